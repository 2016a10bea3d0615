"""Our pages in a real browser under their Content-Security-Policy: nothing of them is refused."""

import subprocess
import sys
from uuid import uuid4

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Person
from tests.live import System
from tests.live_databases import ROOT

pytest_plugins = ["tests.live"]

PASSWORD = "a long password for tests"
COLLECT = """
    window.refused = [];
    document.addEventListener('securitypolicyviolation', (event) => window.refused.push(
        `${event.effectiveDirective} refuses ${event.blockedURI} in ${location.pathname}`));
"""


def refused(page: Page) -> list[str]:
    found: list[str] = page.evaluate("window.refused")
    return found


@pytest.fixture(scope="module")
def superuser(live: System) -> str:
    """Its name."""
    name = f"root-{uuid4().hex}"
    environment = {**live.environment_of("setup"), "DJANGO_SUPERUSER_PASSWORD": PASSWORD}
    command = ["manage.py", "createsuperuser", "--noinput", "--username", name, "--email", ""]
    subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, check=True)
    return name


@pytest.fixture
def page(person: Person, superuser: str) -> Page:
    """A tab of a superuser, which takes note of everything that the policy refuses."""
    page = person.context.new_page()
    page.add_init_script(COLLECT)
    page.goto("/admin/")
    page.fill("#id_username", superuser)
    page.fill("#id_password", PASSWORD)
    page.press("#id_password", "Enter")
    page.wait_for_url("**/admin/")
    return page


def test_the_admin_works_under_the_policy(person: Person, page: Page):
    conversation = person.asked("rounds", hold_at=-1)
    assert refused(page) == []
    for path in ("/admin/koda_runs/conversation/", "/admin/koda_runs/run/", "/admin/auth/user/"):
        page.goto(path)
        assert refused(page) == []
        page.locator("#result_list a[href*='/change/']").first.click()
        page.wait_for_load_state("networkidle")
        assert refused(page) == []
    page.goto("/admin/auth/user/add/")
    assert page.locator("#id_username").evaluate("field => getComputedStyle(field).fontSize")
    assert refused(page) == []
    assert person.turns(conversation)


@pytest.mark.parametrize("path", ["/", "/api/docs"])
def test_a_page_loads_under_the_policy(page: Page, path: str):
    page.goto(path)
    page.wait_for_load_state("networkidle")
    assert refused(page) == []


def test_what_stands_in_a_page_does_not_run(page: Page):
    page.goto("/")
    page.evaluate(
        """() => {
            const script = document.createElement('script');
            script.textContent = 'window.ran = 1';
            document.body.append(script);
            document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.ran = 1">');
        }"""
    )
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.ran") is None
    assert refused(page)
