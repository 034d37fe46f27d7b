"""When the whole window, and a lesson in it, has come to rest."""


def settle(qtbot, program):
    def calm():
        now, teaching = program.session.snapshot(), program.teaching
        story = now.story is not None and now.picture is not None and now.story.now.spec == now.picture.spec
        there = now.picture is not None and now.picture.complete and not now.running
        there = there and (now.picture.spec, now.picture.view) == program.controller.wanted()
        return there and teaching._coming is None and teaching._to_select is None and story

    qtbot.waitUntil(calm, timeout=20_000)
