"""The least that every page must do in a browser: open all that it has in silence, and keep what it shows from acting."""

from __future__ import annotations

import pytest

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

CANARY = "</script><img src=x onerror=\"document.title='owned'\">"


def test_every_page_opens_and_text_of_users_is_never_markup(open_page, settled, rich):
    page = open_page(*rich(CANARY))
    for link in page.locator("nav.pages a").all():
        address = link.get_attribute("href")
        link.click()
        expect(page.locator("body")).to_have_attribute("data-shown", address.removeprefix("#/"))
        expect(settled(page).locator("img[src=x]")).to_have_count(0)
        assert "owned" not in page.title().replace(CANARY, ""), address
    expect(page.locator("script:not([type])")).to_have_count(2)


def test_the_policy_stops_calls_scripts_styles_and_frames(open_page, perception, watch):
    page = open_page(perception)
    blocked = []
    page.on("requestfailed", lambda request: blocked.append((request.url, request.failure)))
    page.evaluate(
        "window.stopped = []; document.addEventListener('securitypolicyviolation',"
        "event => window.stopped.push(event.effectiveDirective))"
    )
    answer = page.evaluate(
        "fetch('https://example.invalid/?leak').then(() => 'let through', () => 'stopped')"
    )
    assert answer == "stopped"
    page.evaluate(
        "() => { const add = (tag, set) => document.body.append(Object.assign(document.createElement(tag), set));"
        "add('script', {textContent: 'window.ran = true'}); add('style', {textContent: 'body {color: red}'});"
        "add('iframe', {src: 'data:text/html,x'}); add('img', {src: 'https://example.invalid/leak.png'});"
        "new Image().src = 'https://example.invalid/leak2.png'; document.body.setAttribute('style', 'color: red') }"
    )
    page.evaluate("() => { setTimeout('window.ran = true', 0) }")
    wanted = ["connect-src", "script-src-elem", "style-src-elem", "frame-src", "img-src", "script-src"]
    page.wait_for_function("wanted => wanted.every(one => window.stopped.includes(one))", arg=wanted)
    assert page.evaluate("window.ran") is None
    # What the browser tells by itself comes when it comes.
    while len(watch.console) < 6 or not {(url, "csp") for url in watch.requests} <= set(blocked):
        page.wait_for_timeout(50)
    watch.console.clear()
    watch.requests.clear()
