from __future__ import annotations

import base64
import os
import stat
from typing import TYPE_CHECKING

import pytest

from drivefeed.domain.errors import NeedsAttention
from drivefeed.secrets.places import GivenKeys, KeyCommand, KeyFile, NoPlace, keys_in, place_for
from drivefeed.secrets.ring import KeyRing, Sealed
from drivefeed.secrets.sealing import Key

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = b"a secret of nobody"


def text(*keys: Key) -> str:
    return ",".join(base64.b64encode(key.secret).decode() for key in keys)


def ring(*keys: Key) -> KeyRing:
    return KeyRing(GivenKeys(text(*keys)))


def test_what_is_sealed_opens_for_its_row_alone() -> None:
    own = ring(Key.new())
    sealed = own.seal(PLAIN, row_id="row-1")
    assert PLAIN not in sealed.value
    assert own.unseal(sealed, row_id="row-1") == PLAIN
    with pytest.raises(NeedsAttention, match="row row-2 belongs to another row"):
        own.unseal(sealed, row_id="row-2")


def test_a_moved_value_does_not_open_even_where_its_mark_was_forged() -> None:
    own = ring(Key.new())
    one, other = own.seal(PLAIN, row_id="row-1"), own.seal(b"another", row_id="row-2")
    forged = Sealed(other.value[:9] + one.value[9:], one.key_id)
    with pytest.raises(NeedsAttention, match="damaged"):
        own.unseal(forged, row_id="row-2")


def test_the_same_value_is_sealed_differently_each_time() -> None:
    own = ring(Key.new())
    assert len({own.seal(PLAIN, row_id="row").value for _ in range(50)}) == 50


@pytest.mark.parametrize("length", [0, 1, 20, 36])
def test_a_short_value_is_called_cut(length: int) -> None:
    own = ring(Key.new())
    sealed = own.seal(PLAIN, row_id="row")
    with pytest.raises(NeedsAttention, match=f"cut short: {length} bytes"):
        own.unseal(Sealed(sealed.value[:length], sealed.key_id), row_id="row")


@pytest.mark.parametrize("place", [9, 21, 30, -1])
def test_a_changed_byte_is_noticed(place: int) -> None:
    own = ring(Key.new())
    sealed = own.seal(PLAIN, row_id="row")
    value = bytearray(sealed.value)
    value[place] ^= 1
    with pytest.raises(NeedsAttention, match="damaged"):
        own.unseal(Sealed(bytes(value), sealed.key_id), row_id="row")


def test_a_newer_form_is_left_to_a_newer_version() -> None:
    own = ring(Key.new())
    sealed = own.seal(PLAIN, row_id="row")
    with pytest.raises(NeedsAttention, match="newer drivefeed"):
        own.unseal(Sealed(b"\x02" + sealed.value[1:], sealed.key_id), row_id="row")


def test_the_first_key_seals_and_every_key_opens() -> None:
    old, new = Key.new(), Key.new()
    before = ring(old).seal(PLAIN, row_id="row")
    both = ring(new, old)
    assert both.unseal(before, row_id="row") == PLAIN
    assert both.seal(PLAIN, row_id="row").key_id == new.key_id
    assert both.key_ids == [new.key_id, old.key_id]


def test_a_missing_key_is_named() -> None:
    lost, here = Key.new(), Key.new()
    sealed = ring(lost).seal(PLAIN, row_id="row")
    with pytest.raises(NeedsAttention, match=lost.key_id) as raised:
        ring(here).unseal(sealed, row_id="row")
    assert here.key_id in str(raised.value)


def test_keys_say_nothing_of_themselves() -> None:
    key = Key.new()
    assert base64.b64encode(key.secret).decode()[:6] not in repr(key)
    assert key.secret.hex()[:12] != key.key_id
    assert "value" not in repr(ring(key).seal(PLAIN, row_id="row"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "There is no key"),
        (" ,\n", "There is no key"),
        ("c2hvcnQ=", "Key 1 in here is not 32 bytes"),
        ("not base64 at all!", "Key 1 in here is not 32 bytes"),
    ],
)
def test_bad_keys_are_told_without_being_quoted(words: str, sentence: str) -> None:
    with pytest.raises(NeedsAttention, match=sentence) as raised:
        keys_in(words, "here")
    assert not words.strip(" ,\n") or words not in str(raised.value)


def test_both_alphabets_of_base64_are_read() -> None:
    key = Key(b"\xfb\xff" * 16)
    plain, for_urls = text(key), base64.urlsafe_b64encode(key.secret).decode()
    assert plain != for_urls
    assert keys_in(f"{plain}\n{for_urls}", "here") == [key, key]


def test_a_key_file_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    made = KeyRing(KeyFile(path, may_make=True))
    assert made.wants_first_key
    assert made.make_first_key()
    assert not made.wants_first_key
    sealed = made.seal(PLAIN, row_id="row")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert KeyRing(KeyFile(path, may_make=True)).unseal(sealed, row_id="row") == PLAIN
    assert [one.name for one in tmp_path.iterdir()] == ["secret.key"]
    assert not KeyFile(path, may_make=True).make()


def test_a_key_file_is_not_made_where_the_catalog_is_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(NeedsAttention, match="no file"):
        KeyRing(KeyFile(tmp_path / "secret.key", may_make=False)).seal(PLAIN, row_id="row")
    assert not list(tmp_path.iterdir())


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    KeyFile(path, may_make=True).make()
    path.chmod(0o644)
    with pytest.raises(NeedsAttention, match="chmod 600"):
        KeyRing(KeyFile(path, may_make=True)).seal(PLAIN, row_id="row")


def test_a_running_ring_notices_a_new_key_in_its_file(tmp_path: Path) -> None:
    place = KeyFile(tmp_path / "secret.key", may_make=True)
    running = KeyRing(place)
    running.make_first_key()
    before = running.newest
    added = Key.new()
    place.replace([added, before])
    assert running.seal(PLAIN, row_id="row").key_id == added.key_id


def test_a_command_gives_keys_and_its_output_stays_untold(tmp_path: Path) -> None:
    key = Key.new()
    file = tmp_path / "printed"
    file.write_text(text(key))
    assert KeyRing(KeyCommand(f"cat {file}")).newest == key
    file.write_text("hunter2hunter2")
    with pytest.raises(NeedsAttention, match="not 32 bytes") as raised:
        KeyCommand(f"cat {file}").load()
    assert "hunter2" not in str(raised.value)
    with pytest.raises(NeedsAttention, match="exit code 1"):
        KeyCommand("false").load()
    with pytest.raises(NeedsAttention, match="cannot be run"):
        KeyCommand("no-such-command-anywhere").load()
    with pytest.raises(NeedsAttention, match="cannot be run"):
        KeyCommand("cat 'unbalanced").load()


def test_settings_name_one_place(tmp_path: Path) -> None:
    given = place_for(given="x", file=tmp_path, command="y", beside=tmp_path)
    assert isinstance(given, GivenKeys)
    file = place_for(given=None, file=tmp_path / "k", command="y", beside=tmp_path)
    assert isinstance(file, KeyFile)
    assert file.path == tmp_path / "k"
    assert isinstance(place_for(given="", file=None, command="y", beside=None), KeyCommand)
    beside = place_for(given=None, file=None, command=" ", beside=tmp_path)
    assert isinstance(beside, KeyFile)
    nothing = place_for(given=None, file=None, command="", beside=None)
    assert isinstance(nothing, NoPlace)
    with pytest.raises(NeedsAttention, match="openssl rand"):
        nothing.load()


def test_a_key_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        place = KeyFile(tmp_path / "absent" / "secret.key", may_make=True)
    else:
        tmp_path.chmod(0o500)
        place = KeyFile(tmp_path / "secret.key", may_make=True)
    with pytest.raises(NeedsAttention, match="cannot be made"):
        place.make()


def test_a_lost_key_file_is_not_made_anew_by_being_read(tmp_path: Path) -> None:
    place = KeyFile(tmp_path / "secret.key", may_make=True)
    running = KeyRing(place)
    running.make_first_key()
    sealed = running.seal(PLAIN, row_id="row")
    place.path.unlink()
    for use in (
        lambda: running.seal(PLAIN, row_id="row"),
        lambda: running.unseal(sealed, row_id="row"),
        lambda: running.newest,
    ):
        with pytest.raises(NeedsAttention, match="bring it back from its copy"):
            use()
    assert not place.path.exists()
