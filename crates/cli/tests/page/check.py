"""Uses the page of `cyclescope report` as a reader would: check.py PROGRAM [PICTURES].

Each test is a function whose name begins with `test_`. The page is made from synthetic rows, so
nothing is measured. The figures of time are printed; a test fails only far above them.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

ROWS = 17000
HOSTILE = "<img src=x onerror=alert(1)>"


def quantity(value, unit="core_cycles"):
    return {"value": value, "low": value * 0.99, "high": value * 1.01, "unit": unit}


def instruction(number, factor=1.0):
    """A row of `instr`. Row 7 has a mnemonic that a careless page would obey."""
    mnemonic = HOSTILE if number == 7 else f"op{number % 900}"
    latency = {"from": "op2", "to": "op1", "cost": quantity(1 + number % 9), "bound": "exact", "variant": None,
               "immediate": None, "chain": f"op{number} rax, rcx", "regimes": None}
    rate = {"cost": quantity(0.25 * (1 + number % 4) * factor), "recipe": "128 copies in a loop", "fraction": None, "decoders": None,
            "modes": [], "typical": None, "typical_modes": [], "variants": []}
    slots = {"count": quantity(1.0, "slots"), "verdict": "exact", "whole": 1, "fillers": ["zero_idiom", "blend"], "why": None}
    return {"schema": "cyclescope/1", "kind": "instr", "code": f"Code_{number}", "mnemonic": mnemonic, "operands": f"r{number}, r64",
            "encoding": "legacy", "executor": "user", "isa": "x64", "implicit": [], "bytes": "48 0f af c1", "immediate": None, "tried": [],
            "status": "measured", "reason": None, "latency": [latency], "throughput": rate, "slots": slots, "tags": [], "caveats": [],
            "repro": f"cyclescope instr 'Code_{number}' --seed 1"}


def machine(name):
    return {"schema": "cyclescope/1", "kind": "machine", "cpu": {"brand": {"value": name}, "microarchitecture": {"value": {"name": "Zen 9", "product": "Test"}}, "family": 1},
            "hypervisor": {"name": "KVM"}, "kernel": "6.0", "topology": {"online": {"value": [0, 1]}}}


def write_lines(folder, name, lines):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return path


def make_page(program, folder):
    rows = [instruction(number) for number in range(ROWS)]
    other = [instruction(number, 2.0 if number == 100 else 1.0) for number in range(ROWS)]
    doctor = {"schema": "cyclescope/1", "kind": "doctor", "repro": "cyclescope doctor", "findings": [{"state": "advice", "text": "the sibling is busy", "remedy": "stop it"}]}
    claim = {"schema": "cyclescope/1", "kind": "evaluate.claim", "text": "CPUID serialises", "source": "a paper", "holds": False, "why": "28 cycles"}
    method = {"schema": "cyclescope/1", "kind": "evaluate", "clock": "rdtsc", "executor": "user", "overhead": quantity(20.0)}
    stairs = {"schema": "cyclescope/1", "kind": "evaluate.resolution", "clock": "rdtsc", "executor": "user", "unit": "tsc_ticks",
              "staircases": [{"body": "iterations", "points": [{"length": n, "minimum": 40 + 2 * n, "variance": 4 + n} for n in range(40)]}]}
    marker = {"schema": "cyclescope/1", "kind": "marker", "design": "flag", "state": "dormant", "context": "empty", "cost": quantity(0.5), "likely_bytes": 11, "unlikely_bytes": 77}
    pairs = [{"schema": "cyclescope/1", "kind": "uarch", "test": "core_to_core", "what": f"core_to_core.{one}.{other}", "verdict": "found", "value": quantity(50.0 + 10 * one + other, "ns"),
              "definition": "", "limited_by": None, "why": "", "cpuid": None, "fillers": [], "witnesses": [], "caveats": [], "pair": {"cpus": [one, other], "cluster": 1}} for one in range(3) for other in range(one + 1, 3)]
    published = os.path.join(folder, "published.csv")
    with open(published, "w", encoding="utf-8") as file:
        file.write("Mnemonic,Operands,Latency_cycles,RThroughput_cycles\nOP200,\"r200,R64\",3,0.25\nop300,\"r300, r64\",4,2\nop300,\"r300, r64\",4,4\nnosuch,r64,1,1\n")
    files = [
        write_lines(folder, "one.jsonl", [machine("CPU one"), *rows]),
        write_lines(folder, "two.jsonl", [machine("CPU two"), *other]),
        write_lines(folder, "rest.jsonl", [machine("CPU one"), doctor, method, claim, stairs, marker, *pairs]),
        published,
    ]
    page = os.path.join(folder, "page.html")
    subprocess.run([program, "report", *files, "-o", page], check=True, stdout=subprocess.DEVNULL)
    return page


class Browser:
    def __init__(self, page, width=1400, dark=False):
        options = webdriver.ChromeOptions()
        for option in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--window-size={width},900"]:
            options.add_argument(option)
        if dark:
            options.add_argument("--force-dark-mode")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options)
        self.driver.set_page_load_timeout(60)
        self.page = "file://" + page

    def open(self, link=""):
        self.driver.get("about:blank")
        self.driver.get(self.page + link)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, script, seconds=20):
        end = time.time() + seconds
        while time.time() < end:
            found = self.run(script)
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"not within {seconds} s: {script}")

    def text(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector).text

    def rows(self):
        self.wait("return document.querySelectorAll('.slick-row').length || document.querySelector('#search') && document.querySelector('.tools .note').textContent.startsWith('0 ')")
        return self.run("return [...document.querySelectorAll('.slick-row')].sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top).map(row => [...row.querySelectorAll('.slick-cell')].map(cell => cell.textContent))")

    def search(self, text):
        self.run("const box = document.getElementById('search'); box.value = arguments[0]; box.dispatchEvent(new Event('input'));", text)

    def click(self, selector):
        self.driver.find_element(By.CSS_SELECTOR, selector).click()


def test_first_paint_is_fast(browser, figures):
    browser.open()
    figures["first paint, ms"] = browser.wait("const paint = performance.getEntriesByName('first-contentful-paint')[0]; return paint && paint.startTime")
    assert figures["first paint, ms"] < 5000, figures
    text = browser.text("main")
    for part in ["CPU one", "CPU two", "the sibling is busy", "stop it", "17000 of 17000 instruction forms"]:
        assert part in text, (part, text)


def test_search_filters_as_one_types(browser, figures):
    browser.open("#instructions")
    browser.rows()
    took = []
    for text, count in [("op5", None), ("op89?", 180), ("op123 r123", 1), ("nothing-like-it", 0), ("Code_16999", 1)]:
        start = browser.run("return performance.now()")
        browser.search(text)
        took.append(browser.run("return performance.now()") - start)
        shown = browser.text(".tools .note")
        assert count is None or shown.startswith(f"{count} of"), (text, shown)
    figures["search, ms"] = max(took)
    assert max(took) < 1000, took


def test_a_hostile_mnemonic_is_text(browser, _):
    browser.open("#instructions?q=onerror")
    rows = browser.rows()
    assert rows[0][0].startswith(HOSTILE), rows
    browser.click(".slick-row .slick-cell")
    browser.wait("return document.querySelector('#row-detail h3')")
    assert HOSTILE in browser.text("#row-detail h3")
    assert browser.run("return document.querySelectorAll('main img[src=x]').length") == 0


def test_columns_sort_both_ways(browser, figures):
    browser.open("#instructions")
    browser.rows()
    took = []
    for title in ["latency", "latency", "rthroughput", "instruction"]:
        took.append(browser.run("const header = [...document.querySelectorAll('.slick-header-column')].find(one => one.textContent.trim() === arguments[0]); const start = performance.now(); header.click(); return performance.now() - start", title))
    rows = browser.rows()
    names = [row[0] for row in rows]
    assert names == sorted(names), names[:5]
    figures["sort, ms"] = max(took)
    assert max(took) < 2000, took


def test_a_row_opens_and_its_link_works(browser, _):
    browser.open("#instructions?q=Code_4242")
    browser.rows()
    browser.click(".slick-row .slick-cell")
    browser.wait("return document.querySelector('#row-detail pre')")
    detail = browser.text("#row-detail")
    for part in ["op4242 rax, rcx", "128 copies in a loop", "cyclescope instr 'Code_4242' --seed 1", "exact"]:
        assert part in detail, (part, detail)
    link = browser.run("return document.querySelector('#row-detail a').hash")
    browser.open(link)
    browser.wait("return document.querySelector('#row-detail pre')")
    assert "Code_4242" in browser.text("#row-detail")


def test_two_machines_stand_side_by_side_differences_first(browser, figures):
    start = time.time()
    browser.open("#instructions?b=1")
    rows = browser.rows()
    figures["two tables compared, s"] = time.time() - start
    assert rows[0][0].startswith("op100 ") and rows[0][1].endswith("%") and rows[0][1] != "0.0 %", rows[0]
    assert rows[1][1] == "0.0 %", rows[1]


def test_a_published_table_is_joined_by_the_rules_of_compare(browser, _):
    """Row 200 agrees in latency and throughput. Two lines name row 300 and differ. No other row is named."""
    browser.open("#instructions?b=2")
    rows = browser.rows()
    assert rows[0][0].startswith("op300 ") and (rows[0][1], rows[0][5]) == ("94 %", "2 – 4"), rows[0]
    assert rows[1][0].startswith("op200 ") and rows[1][1] == "0.0 %", rows[1]
    assert rows[2][1] == "–", rows[2]
    # The other way round, results still come first.
    browser.open("#instructions?a=2&b=0")
    assert browser.rows()[0][0].startswith("op300 ")


def test_paper_gets_all_rows_of_the_search(browser, _):
    browser.open("#instructions?q=op42%20")
    shown = len(browser.rows())
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    browser.run("dispatchEvent(new Event('beforeprint'))")
    rows, grid = browser.run("return [document.querySelectorAll('table.paper tbody tr').length, document.getElementById('instruction-grid').getClientRects().length]")
    visible = browser.run("return document.querySelector('table.paper').getClientRects().length")
    browser.run("dispatchEvent(new Event('afterprint'))")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert rows >= shown > 0 and grid == 0 and visible == 1, (rows, shown, grid, visible)
    assert browser.run("return document.querySelector('table.paper')") is None
    paper = browser.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]
    assert len(paper) > 10000, len(paper)


def test_the_matrix_of_cores_is_present(browser, _):
    browser.open("#core")
    table = browser.run("return [...document.querySelectorAll('table.heat tr')].map(row => [...row.children].map(cell => cell.textContent))")
    assert table and table[0][1:] == ["0", "1", "2"] and table[1][1:] == ["–", "51", "52"], table


def test_a_table_is_copied(browser, _):
    browser.open("#instructions?q=Code_4242")
    browser.rows()
    browser.run("window.copied = null; navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); };")
    for name, part in [("Markdown", "| op642 r4242, r64 |"), ("CSV", '"op642 r4242, r64"'), ("JSON", '"instruction": "op642 r4242, r64"')]:
        browser.run("[...document.querySelectorAll('button')].find(one => one.textContent === arguments[0]).click()", f"Copy {name}")
        text = browser.wait("return window.copied")
        assert part in text, (name, text)


def test_the_keyboard_reaches_everything(browser, _):
    browser.open("#timing")
    body = browser.driver.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert browser.run("return document.activeElement.className") == "skip"
    seen = set()
    for _ in range(60):
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
        seen.add(browser.run("const at = document.activeElement; return at.tagName + '.' + at.className"))
    assert any(name.startswith("DIV.chart") for name in seen) and any(name.startswith("BUTTON") for name in seen), seen
    browser.run("document.querySelector('.chart').focus(); document.querySelector('.chart').scrollIntoView()")
    browser.wait("return document.querySelector('.chart canvas')")
    browser.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert "minimum" in browser.text("#status"), browser.text("#status")
    browser.open("#instructions?q=Code_4242")
    browser.rows()
    browser.run("document.getElementById('search').focus()")
    browser.click(".slick-row .slick-cell")
    browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
    browser.wait("return document.querySelector('#row-detail pre')")


def test_every_section_has_its_content(browser, _):
    for link, parts in [("#timing", ["rdtsc", "CPUID serialises", "no"]), ("#markers", ["flag", "dormant", "11 + 77"])]:
        browser.open(link)
        text = browser.text("main")
        assert all(part in text for part in parts), (link, text)


def test_dark_and_light_have_contrast(browser, _):
    browser.open()
    for _ in range(2):
        browser.click("#theme")
        ratio = browser.run("""
            const light = (colour) => { const [r, g, b] = colour.match(/\\d+/g).map(Number).map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
            const style = getComputedStyle(document.body), faint = getComputedStyle(document.querySelector('footer'));
            const page = light(style.backgroundColor);
            return [style.color, faint.color].map(light).map(ink => (Math.max(ink, page) + 0.05) / (Math.min(ink, page) + 0.05));""")
        assert min(ratio) >= 4.5, ratio


def test_a_telephone_has_no_sideways_scroll(browser, _):
    browser.driver.set_window_size(500, 800)
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True})
    for link in ["", "#instructions", "#timing", "#markers"]:
        browser.open(link)
        time.sleep(0.3)
        wide = browser.run("return document.documentElement.scrollWidth")
        assert wide <= 361, (link, wide)
    browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.driver.set_window_size(1400, 900)


def check_silence(browser):
    """Nothing is written to the console, and nothing is requested but the page."""
    messages = browser.driver.get_log("browser")
    assert messages == [], messages
    requests = [json.loads(entry["message"])["message"] for entry in browser.driver.get_log("performance")]
    addresses = [one["params"]["request"]["url"] for one in requests if one["method"] == "Network.requestWillBeSent"]
    foreign = [address for address in addresses if not address.startswith(("file://", "data:", "blob:", "about:"))]
    assert foreign == [], foreign


def take_pictures(browser, folder):
    for name, width, height, mobile in [("wide", 1400, 900, False), ("telephone", 360, 740, True)]:
        browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile})
        for link in ["overview", "core", "instructions?b=1", "timing", "markers"]:
            for theme in ["light", "dark"]:
                browser.open(f"#{link}")
                browser.run("document.documentElement.dataset.theme = arguments[0]", theme)
                time.sleep(0.7)
                browser.driver.save_screenshot(os.path.join(folder, f"{link.split('?')[0]}-{name}-{theme}.png"))


def main():
    program, pictures = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    failed, passed, figures = 0, 0, {}
    with tempfile.TemporaryDirectory() as folder:
        page = make_page(program, folder)
        figures["page, MB"] = os.path.getsize(page) / 1e6
        browser = Browser(page)
        try:
            for name, test in [(name, test) for name, test in globals().items() if name.startswith("test_")]:
                try:
                    test(browser, figures)
                    check_silence(browser)
                    passed += 1
                except Exception as error:
                    failed += 1
                    print(f"{name} failed: {error}")
            if pictures:
                os.makedirs(pictures, exist_ok=True)
                take_pictures(browser, pictures)
        finally:
            browser.driver.quit()
    print(", ".join(f"{name}: {value:.3g}" for name, value in figures.items()))
    print(f"test result: {'ok' if not failed else 'FAILED'}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out; in a browser")
    sys.exit(1 if failed else 0)


main()
