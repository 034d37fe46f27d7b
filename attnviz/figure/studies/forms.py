"""One attention written in six ways: what the outputs differ by, and what each costs."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from attnviz.figure.block_sheet import Contents
from attnviz.figure.blocks import Block, CountsBlock, Headed, TableBlock
from attnviz.figure.counts import Count
from attnviz.figure.studies.names import short_number
from attnviz.figure.tables import Entry, Line, Table, table_of
from attnviz.figures import Figure
from attnviz.frames import said_bytes
from attnviz.questions.forms import FormReading, FormsAnswer, said_seconds


def _tr(text: str) -> str:
    return QCoreApplication.translate("FormsPage", text)


def sizes_words(answer: FormsAnswer) -> str:
    """What was measured, on what."""
    asked = answer.question
    memory = _tr("fresh memory") if asked.memory == "fresh" else _tr("kept memory")
    threads = _tr("1 thread") if answer.threads == 1 else _tr("{n} threads").format(n=answer.threads)
    under_way = _tr(" · round {n} of {all}").format(n=answer.rounds, all=asked.repeats)
    words = _tr("{n} tokens of {d}, {h} heads · {dtype} on {device}, {threads} · {memory}").format(
        n=f"{asked.tokens:,}", d=asked.d_model, h=asked.num_heads, dtype=asked.dtype, device=asked.device,
        threads=threads, memory=memory,
    )  # fmt: skip
    return words if answer.finished else words + under_way


def same_table(answer: FormsAnswer) -> Table:
    """How far each form's outputs are from the first's."""
    lines = [_beside(answer, place) for place in range(len(answer.forms))]
    return table_of([_tr("form"), _tr("largest difference"), "ULP", ""], lines)


def _beside(answer: FormsAnswer, place: int) -> Line:
    form = answer.forms[place]
    if place == 0:
        return [form.name, *([Entry("—", "muted")] * 2), Entry(_tr("the measure"), "muted")]
    words = {
        "bit for bit": Entry(_tr("bit for bit"), "accent"),
        "rounding": Entry(_tr("rounding")),
        "differs": Entry(_tr("differs")),
    }[form.verdict]
    tip = _tr("{n} eps of the largest output; up to {most} is rounding").format(
        n=f"{form.figure:.1f}", most=f"{answer.question.rounding:.0f}"
    )
    return [
        form.name, Entry(short_number(form.difference), tip=tip),
        Entry(f"{form.ulps:,.1f}" if form.ulps < 1e4 else short_number(form.ulps),
              tip=_tr("steps of {dtype} at the largest output").format(dtype=answer.question.dtype)),
        Entry(words.text, words.role, tip),
    ]  # fmt: skip


def verdict_words(answer: FormsAnswer) -> str:
    """Whether they are one function; "" until all are compared."""
    if answer.done < len(answer.forms) or len(answer.forms) < 2:
        return ""
    differing = [form.name for form in answer.forms if form.verdict == "differs"]
    if differing:
        return _tr("Not the same function: {forms}.").format(forms=", ".join(differing))
    if all(form.verdict == "bit for bit" for form in answer.forms):
        return _tr("One function: not one bit differs.")
    return _tr("One function: the products are summed in other orders, and what is left of that is rounding.")


def costs_table(answer: FormsAnswer) -> Table:
    """Time and memory of a pass of each form."""
    header = [_tr("form"), _tr("time"), _tr("spread"), _tr("memory")]
    return table_of(header, [_cost(form, timed=answer.rounds > 0) for form in answer.forms])


def _cost(form: FormReading, *, timed: bool) -> Line:
    held = said_bytes(form.peak_bytes) if form.peak_bytes >= 0 else "—"
    tip = _tr("the most that a pass allocates at once, its output included")
    times = (said_seconds(form.seconds), f"± {said_seconds(form.spread, form.seconds)}") if timed else ("…", "")
    return [form.name, *times, Entry(held, tip=tip)]


def times_of(answer: FormsAnswer, other: FormsAnswer | None) -> tuple[Count, ...]:
    """Each form's time as a bar; pale, what it takes with the memory of ``other``, where that is more."""
    fastest = answer.by_time()[0].seconds
    beside = {form.name: form.seconds for form in other.forms} if other is not None else {}
    found = []
    for form in answer.forms:
        pair = form.seconds, beside.get(form.name, form.seconds)
        times = _tr("{n} ×").format(n=f"{form.seconds / fastest:.1f}")
        found.append(Count(form.name, times, *(round(seconds * 1e9) for seconds in (min(pair), max(pair)))))
    return tuple(found)


def winner_words(answer: FormsAnswer) -> str:
    """Which form is quick here, and by how much."""
    first, *rest = answer.by_time()
    tied = [form.name for form in answer.quickest()[1:]]
    if tied:
        words = _tr("{form} is the quickest here, but within the spread others may be as quick: {others}.").format(
            form=first.name, others=", ".join(tied)
        )
    else:
        words = _tr(
            "{form} wins here: {time}. The next is {next}, {n} times as long; the last {last}, {m} times."
        ).format(
            form=first.name, time=said_seconds(first.seconds), next=rest[0].name, last=rest[-1].name,
            n=f"{rest[0].seconds / first.seconds:.1f}", m=f"{rest[-1].seconds / first.seconds:.1f}",
        )  # fmt: skip
    return words + " " + _tr("On another machine, or in a book, it may be another form.")


def pages_words(answer: FormsAnswer, other: FormsAnswer) -> str:
    """What new pages of memory cost the form that they cost most."""
    fresh, kept = (answer, other) if answer.question.memory == "fresh" else (other, answer)
    pairs = [
        (one, beside)
        for one, beside in zip(fresh.forms, kept.forms, strict=True)
        if one.seconds - beside.seconds > one.spread + beside.spread
    ]
    if not pairs:
        return _tr("With fresh and with kept memory the times are alike, within the spread.")
    one, beside = max(pairs, key=lambda pair: pair[0].seconds / pair[1].seconds)
    return _tr(
        "Pale: what fresh memory costs more than kept. For {form} it is {fresh} and {kept}: {n} % of its time went "
        "into new pages of memory."
    ).format(
        form=one.name, fresh=said_seconds(one.seconds), kept=said_seconds(beside.seconds),
        n=round(100 * (1 - beside.seconds / one.seconds)),
    )  # fmt: skip


def contents_of(_figure: Figure, answer: FormsAnswer) -> Contents:
    """What the outputs differ by, and once there are times what a pass costs."""
    same = Headed(_tr("The same numbers?"), verdict_words(answer))
    blocks: list[Block] = [TableBlock(same_table(answer), _tr("what the outputs differ by"), same, 0.8, part="same")]
    if answer.rounds:
        costs = Headed(_tr("What a pass costs here"))
        blocks += [
            CountsBlock(times_of(answer, None), _tr("times as bars"), costs, 0.5, part="times"),
            TableBlock(costs_table(answer), _tr("time and memory"), weight=0.7, part="costs"),
        ]
    return Contents(
        title=_tr("One attention, six ways to write it"),
        blocks=tuple(blocks),
        circumstances=sizes_words(answer),
        sentence=winner_words(answer) if answer.rounds else "",
    )
