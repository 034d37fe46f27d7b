import errno
import os
import resource
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from rights import as_nobody, folder_in_sight

from attnviz.files import FileProblem, write_npz, write_whole


def put(path: Path, content: bytes = b"new") -> None:
    write_whole(path, lambda file: file.write(content))


def test_a_new_file_has_the_usual_permissions_and_nothing_is_left_beside_it(tmp_path):
    umask = os.umask(0o022)
    try:
        put(tmp_path / "a.png")
    finally:
        os.umask(umask)
    assert (tmp_path / "a.png").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "a.png").stat().st_mode) == 0o644
    assert [found.name for found in tmp_path.iterdir()] == ["a.png"]


def test_an_old_file_keeps_its_permissions_and_a_link_stays_a_link(tmp_path):
    old = tmp_path / "old.png"
    old.write_bytes(b"old")
    old.chmod(0o640)
    (tmp_path / "link.png").symlink_to(old)
    put(tmp_path / "link.png")
    assert (tmp_path / "link.png").is_symlink()
    assert old.read_bytes() == b"new"
    assert stat.S_IMODE(old.stat().st_mode) == 0o640


@pytest.mark.parametrize("raised", [OSError(28, "No space left on device"), ValueError("odd"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path, raised):
    (tmp_path / "a.png").write_bytes(b"old")

    def fail(file):
        file.write(b"half")
        raise raised

    with pytest.raises((FileProblem, ValueError, KeyboardInterrupt)) as caught:
        write_whole(tmp_path / "a.png", fail)
    if isinstance(raised, OSError):
        assert (
            str(caught.value)
            == f"cannot write {tmp_path / 'a.png'}: the disk is full; make room, or choose another disk"
        )
    assert (tmp_path / "a.png").read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["a.png"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing/a.png", "does not exist; make it"),
        ("file/a.png", "is not a folder"),
        ("folder", "that is a folder; give a file's name"),
        ("n" * 300, "name is too long"),
        ("nul\0.png", "cannot be a file's name"),
        ("half\udc80\ud800.png", "cannot be a file's name"),
        ("pipe", "is a device or a pipe"),
        ("loop", "circle|that cannot be a file's name"),
    ],
)
def test_what_cannot_be_written_is_said_with_what_would_do(tmp_path, name, words):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(FileProblem, match=words):
        put(tmp_path / name)
    assert {found.name for found in tmp_path.iterdir()} == {"file", "folder", "pipe", "loop"}


def test_the_longest_name_can_be_written(tmp_path):
    put(tmp_path / ("n" * 255))
    assert (tmp_path / ("n" * 255)).read_bytes() == b"new"


def test_a_folder_without_permission_is_said():
    with folder_in_sight() as folder:
        (folder / "closed").mkdir(mode=0o555)
        with as_nobody(), pytest.raises(FileProblem, match=f"you may not write in {folder}/closed; choose a folder of"):
            put(folder / "closed" / "a.png")
        assert list((folder / "closed").iterdir()) == []


def test_a_protected_file_is_not_replaced():
    with folder_in_sight() as folder:
        (folder / "a.png").write_bytes(b"old")
        (folder / "a.png").chmod(0o444)
        with as_nobody(), pytest.raises(FileProblem, match="it is write-protected; choose another name"):
            put(folder / "a.png")
        assert (folder / "a.png").read_bytes() == b"old"


def test_missing_permission_in_words(tmp_path):
    def refuse(file):
        raise PermissionError(13, "Permission denied")

    with pytest.raises(FileProblem) as caught:
        write_whole(tmp_path / "a.png", refuse)
    assert caught.value.sentence.endswith(f"you may not write in {tmp_path}; choose a folder of your own")


def test_a_file_size_limit_leaves_the_old_arrays(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"old")
    script = f"""
import resource, numpy as np
from pathlib import Path
from attnviz.files import FileProblem, write_npz
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, {resource.RLIM_INFINITY}))
try:
    write_npz(Path({str(tmp_path / "a.npz")!r}), {{"weights": np.zeros(100_000)}})
except FileProblem as problem:
    print(problem)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert "larger than files may be here" in done.stdout
    assert done.stderr == ""
    assert (tmp_path / "a.npz").read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["a.npz"]


def test_arrays_load_without_pickle_with_their_dtypes(tmp_path):
    stages = {"weights": np.ones((2, 3, 3), np.float16), "context": np.zeros((2, 3, 4), np.float32)}
    text = {"tokens": np.array(("猫", "吃", "fish")), "spec": np.array('{"seed": 123}')}
    write_npz(tmp_path / "a.npz", {**text, **stages})
    with np.load(tmp_path / "a.npz", allow_pickle=False) as loaded:
        assert list(loaded) == ["tokens", "spec", "weights", "context"]
        assert loaded["tokens"].dtype.kind == "U"
        assert loaded["tokens"].tolist() == ["猫", "吃", "fish"]
        assert str(loaded["spec"]) == '{"seed": 123}'
        assert loaded["weights"].dtype == np.float16
        assert loaded["context"].dtype == np.float32


# ------------------------------------------------------------------------------------------------- left by a kill


_HALF = """
import os, signal, sys
from pathlib import Path
from attnviz.files import write_whole
def half(file):
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
write_whole(Path(sys.argv[1]), half)
"""


def killed_in_the_middle(path):
    done = subprocess.run([sys.executable, "-c", _HALF, str(path)], capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    return {found.name for found in path.parent.iterdir() if found.name.startswith(".attnviz-")}


@pytest.mark.parametrize("name", ["a.png", "n" * 255, "猫" * 85, "a 🐈 b.attnviz"])
def test_a_kill_leaves_no_half_file_under_the_asked_name_and_the_next_write_sweeps(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"old")
    (left,) = killed_in_the_middle(path)
    assert len(left) < 50
    assert path.read_bytes() == b"old"
    assert (tmp_path / left).read_bytes() == b"half"
    put(tmp_path / "other")
    assert {found.name for found in tmp_path.iterdir()} == {name, "other"}
    assert path.read_bytes() == b"old"


def test_only_what_a_gone_program_left_is_swept(tmp_path):
    (gone,) = killed_in_the_middle(tmp_path / "a.png")
    machine = gone.split("-")[1]
    lives = f".attnviz-{machine}-{os.getppid()}-00000000"
    elsewhere = f".attnviz-{'0' * 6}-{gone.split('-')[2]}-00000000"  # another machine, that sees the same folder
    old = f".attnviz-{'0' * 6}-{os.getpid()}-11111111"
    others = {".attnviz-notes", ".attnviz-a-1-00000000", f"{gone}.txt", f"x{gone}", ".attnviz", "mine.attnviz", lives}
    for name in {lives, elsewhere, old, *others}:
        (tmp_path / name).write_bytes(b"")
    os.utime(tmp_path / old, (1, 1))
    os.utime(tmp_path / "mine.attnviz", (1, 1))
    folder, link = gone.replace(gone[-8:], "22222222"), gone.replace(gone[-8:], "33333333")
    (tmp_path / folder).mkdir()
    (tmp_path / link).symlink_to(tmp_path / "mine.attnviz")
    put(tmp_path / "b.png")
    kept = {elsewhere, folder, link, "b.png", *others}
    assert {found.name for found in tmp_path.iterdir()} == kept


def test_a_file_that_is_being_written_is_not_swept_by_another_write(tmp_path):
    def write(file):
        file.write(b"outer")
        put(tmp_path / "inner", b"inner")
        in_another = "import sys; from pathlib import Path; from attnviz.files import write_whole\n"
        in_another += "write_whole(Path(sys.argv[1]), lambda file: file.write(b'third'))"
        subprocess.run([sys.executable, "-c", in_another, str(tmp_path / "third")], check=True)

    write_whole(tmp_path / "outer", write)
    contents = {found.name: found.read_bytes() for found in tmp_path.iterdir()}
    assert contents == {name: name.encode() for name in ("outer", "inner", "third")}


def test_of_many_writers_each_reader_sees_one_whole_file(tmp_path):
    path = tmp_path / "shared"
    contents = [bytes([letter]) * 200_000 for letter in b"ab"]
    put(path, contents[0])
    over = threading.Event()

    def write(content):
        while not over.is_set():
            put(path, content)

    writers = [threading.Thread(target=write, args=(content,)) for content in contents]
    for writer in writers:
        writer.start()
    seen = {path.read_bytes() for _ in range(300)}
    over.set()
    for writer in writers:
        writer.join()
    assert seen <= set(contents)
    assert [found.name for found in tmp_path.iterdir()] == ["shared"]


def test_a_path_of_250_characters_can_be_written(tmp_path):
    folder = tmp_path
    while len(str(folder)) < 200:
        folder /= "folder 猫 🐈"
    folder.mkdir(parents=True)
    path = folder / ("n" * (250 - len(str(folder)) - 1))
    put(path)
    assert len(str(path)) == 250
    assert path.read_bytes() == b"new"


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 kB that may be filled; an ordinary folder where this user may not mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    yield place
    if mounted:
        subprocess.run(["umount", str(place)], check=True)


def failing(number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    return fail


def test_a_full_disk_is_said_and_leaves_the_old_file(small_disk, monkeypatch):
    path = small_disk / "a.png"
    put(path, b"old")
    if not small_disk.is_mount():
        monkeypatch.setattr(os, "fsync", failing(errno.ENOSPC))
    with pytest.raises(FileProblem, match="the disk is full; make room, or choose another disk"):
        put(path, b"x" * 1_000_000)
    assert path.read_bytes() == b"old"
    assert [found.name for found in small_disk.iterdir()] == ["a.png"]


def test_a_read_only_disk_is_said(small_disk, monkeypatch):
    if small_disk.is_mount():
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    else:
        monkeypatch.setattr(os, "open", failing(errno.EROFS))
    with pytest.raises(FileProblem, match="is on a read-only disk; choose another folder"):
        put(small_disk / "a.png")
    assert list(small_disk.iterdir()) == []
