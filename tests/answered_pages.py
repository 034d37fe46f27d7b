"""Pages whose questions are answered at once by the real studies, and snapshots of real pictures."""

from dataclasses import replace
from functools import lru_cache

from attnviz.engine import Engine
from attnviz.session import Session
from attnviz.spec import Request, SpecError, View, Viewport
from attnviz.studies import answers


def snapshot_of(spec, *, view=None, pinned=None, selected=None):
    """A finished picture of ``spec``; ``pinned`` is another snapshot, whose picture is A."""
    return replace(_pictured(spec, view or View()), selected=selected, pinned=pinned and pinned.picture)


@lru_cache(maxsize=32)
def _pictured(spec, view):
    session = Session(spec, view)
    generation = session.begin(spec, view)
    engine = Engine()
    request = Request(spec=spec, view=view, viewport=Viewport(pixels=(64, 64)), generation=generation)
    for message in engine.stream(request):
        if message is not None:
            session.accept(message)
    engine.close()
    return session.snapshot()


class Asked:
    """What a page has asked, with the answers given at once; ``held`` keeps them back."""

    def __init__(self, page, *, held=False):
        self.page, self.questions, self.called_off, self.specs, self.held = page, [], [], [], held
        page.asked.connect(self._on_asked)
        page.called_off.connect(self.called_off.append)
        page.spec_edited.connect(self.specs.append)

    def _on_asked(self, question):
        self.questions.append(question)
        if not self.held:
            self.answer(question)

    def answer(self, question, most=None):
        """Give the study's answers, the first ``most`` of them or all and the end."""
        try:
            for place, answer in enumerate(answers(question)):
                if most is not None and place >= most:
                    return
                self.page.take_answer(answer)
        except SpecError as error:
            self.page.take_failure(str(error))
        self.page.take_end()


def shown(qtbot, page, *, held=False, width=560):
    """The page on the screen, active."""
    qtbot.addWidget(page)
    asked = Asked(page, held=held)
    page.resize(width, 1200)
    page.show()
    page.set_active(True)
    return asked
