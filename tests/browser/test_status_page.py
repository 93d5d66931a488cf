"""The status page in Chromium: it moves by itself, fits every screen, and can be read by all."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from support.chromium import Complaints
from unit.web.conftest import CANARY, ticking

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

    from unit.web.conftest import House

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATIENCE_MS = 60_000
SCREENS = ((360, 740), (1280, 800))
CONTRAST = """
() => {
  const channel = (value) => {
    const part = value / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  };
  const read = (colour) => (colour.match(/[\\d.]+/g) || []).map(Number);
  const light = ([red, green, blue]) =>
    0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = read(getComputedStyle(one).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.checkVisibility()) continue;
    const pair = [light(read(getComputedStyle(element).color)), light(ground(element))];
    const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (ratio < 4.5) found.push(`${texts.currentNode.data.trim()} ${ratio.toFixed(2)}`);
  }
  return found;
}
"""
UNNAMED = """
() => [...document.querySelectorAll('a, button, input:not([type=hidden]), select, svg, img')]
  .filter((one) => !one.closest('[aria-hidden=true]'))
  .filter((one) => !(one.labels?.length || one.textContent.trim() || one.ariaLabel ||
                     one.hasAttribute('alt')))
  .map((one) => one.outerHTML)
"""
OUTLINE = """
() => [...document.querySelectorAll('h1, h2, h3, h4')].map((one) => Number(one.tagName[1]))
"""


async def test_progress_moves_without_a_reload(house: House, signed_in: BrowserContext) -> None:
    page = await signed_in.new_page()
    complaints = Complaints(page)
    await page.goto("/")
    card = page.locator(f"#connection-{house.connection_id}")
    await expect(card).to_contain_text("75 % of 4 files")
    await expect(page.locator("#live")).to_contain_text("Live")
    await page.evaluate("window.stayed = true")
    link = page.locator(f"#link-{house.connection_id}")
    await link.focus()

    await house.rig.bring_live("d", pages=2)
    async with ticking(house.clock):
        await expect(card).to_contain_text("100 % of 4 files", timeout=PATIENCE_MS)
    await expect(card.locator("svg.bar")).to_have_attribute(
        "aria-label", "100 % done: 2 searchable, 1 failed, 1 skipped"
    )
    await expect(page.locator(".usage")).to_contain_text("9 pages")
    assert await page.evaluate("window.stayed")
    await expect(link).to_be_focused()
    assert complaints.found == []
    await page.close()


async def test_an_open_list_and_an_open_passport_follow(
    house: House, signed_in: BrowserContext
) -> None:
    where = f"/connections/{house.connection_id}"
    files, passport = await signed_in.new_page(), await signed_in.new_page()
    await files.goto(f"{where}?q=waiting")
    await passport.goto(f"{where}/files/d")
    await expect(files.locator("tbody tr")).to_contain_text("in progress")
    await expect(passport.locator(".version")).to_contain_text("discovered")
    for page in (files, passport):
        await expect(page.locator("#live")).to_contain_text("Live")

    await house.rig.bring_live("d", pages=2)
    async with ticking(house.clock):
        row, head = files.locator("tbody tr"), passport.locator(".version h2")
        await expect(row).to_contain_text("searchable", timeout=PATIENCE_MS)
        await expect(head).to_contain_text("searchable", timeout=PATIENCE_MS)
    await expect(passport.locator(".facts")).to_contain_text("2 pages, at")
    for page in (files, passport):
        await page.close()


async def test_a_failed_file_says_why_and_offers_no_button(
    house: House, signed_in: BrowserContext
) -> None:
    page = await signed_in.new_page()
    await page.goto("/")
    await page.get_by_role("link", name="1 file failed").click()
    await page.get_by_role("link", name=CANARY).first.click()
    await expect(page.locator("h1")).to_have_text(f"<i>{CANARY}<i>.txt")
    await expect(page.locator(".version h2")).to_contain_text("failed")
    await expect(page.locator(".why.bad")).to_contain_text("What to do")
    await expect(page.locator(".story li.bad")).to_contain_text("refused (corrupt): not a <zip>")
    where = f"/connections/{house.connection_id}"
    for address in ("/", where, f"{where}/files/b", "/search"):
        await page.goto(address)
        buttons = await page.locator("button").all_inner_texts()
        assert set(buttons) <= {"Sign out", "Show", "Search"}
        sent = await page.eval_on_selector_all("form[method=post]", "all => all.map(f => f.action)")
        assert sent == [f"{house.page.url}/sign-out"]
    await page.close()


async def test_pages_fit_screens_and_can_be_read(
    signed_in: BrowserContext, addresses: list[str]
) -> None:
    page = await signed_in.new_page()
    complaints = Complaints(page)
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # a literal
        for address in addresses:
            await page.goto(address)
            for width, height in SCREENS:
                await page.set_viewport_size({"width": width, "height": height})
                wide = await page.evaluate("document.scrollingElement.scrollWidth")
                assert wide <= width, (address, width)
            assert await page.evaluate(CONTRAST) == [], (address, scheme)
    missing = [one for one in complaints.found if "404" not in one and "401" not in one]
    assert missing == []
    await page.close()


async def test_pages_have_landmarks_names_and_an_outline(
    signed_in: BrowserContext, addresses: list[str]
) -> None:
    page = await signed_in.new_page()
    for address in addresses:
        await page.goto(address)
        for role in ("main", "banner", "contentinfo"):
            assert await page.get_by_role(role).count() == 1, (address, role)  # type: ignore[arg-type]  # a literal
        assert await page.evaluate(UNNAMED) == [], address
        levels = await page.evaluate(OUTLINE)
        assert levels.count(1) == 1, address
        assert levels[0] == 1, address
        jumps = [pair for pair in pairwise(levels) if pair[1] > pair[0] + 1]
        assert jumps == [], address
        assert await page.title() != " · drivefeed"
    await page.goto(addresses[0])
    await page.keyboard.press("Tab")
    await expect(page.locator(".skip")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#main")).to_be_focused()
    await page.close()


async def test_nothing_moves_for_those_who_do_not_want_it(signed_in: BrowserContext) -> None:
    page = await signed_in.new_page()
    speed = "getComputedStyle(document.querySelector('.bar rect')).transitionDuration"
    for wish, seconds in (("reduce", "0s"), ("no-preference", "0.4s")):
        await page.emulate_media(reduced_motion=wish)  # type: ignore[arg-type]  # a literal
        await page.goto("/")
        assert seconds in await page.evaluate(speed)
    await page.close()


async def test_without_scripts_the_pages_are_whole(house: House, signed_in: BrowserContext) -> None:
    cookies = await signed_in.cookies()
    assert signed_in.browser is not None
    plain = await signed_in.browser.new_context(base_url=house.page.url, java_script_enabled=False)
    await plain.add_cookies([{**one} for one in cookies])  # type: ignore[typeddict-item]  # as read
    page = await plain.new_page()
    await page.goto(f"/connections/{house.connection_id}")
    await page.get_by_label("Stands").select_option("failed")
    await page.get_by_role("button", name="Show").click()
    await expect(page.locator("tbody tr")).to_have_count(1)
    await plain.close()
