// The pages of a running hub, driven in a headless browser.
//
//   WATCHFIRE_URL=http://127.0.0.1:9900 node --test test/pages.mjs
//
// The hub is one started with `watchfire run --demo`. SCREENSHOTS=folder keeps a picture of each page, light,
// dark and narrow. CHROMIUM names another browser than /usr/bin/chromium.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { chromium } from "playwright-core";

const URL_HUB = process.env.WATCHFIRE_URL?.replace(/\/$/, "");
const SCREENSHOTS = process.env.SCREENSHOTS;
const PATIENCE_MS = 20_000;

/** A number and its unit as the page writes them, whatever the space between. */
const CELSIUS = /\d\s?°C/u;
const WATTS = /\d\s?W/u;
const PERCENT = /\d\s?%/u;

describe("pages", { skip: URL_HUB ? false : "WATCHFIRE_URL is not set" }, () => {
  let browser;
  let gpus = [];

  before(async () => {
    await ready();
    browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    });
    if (SCREENSHOTS) await mkdir(SCREENSHOTS, { recursive: true });
    gpus = await api("series?match[]=watchfire_gpu_info&match[]=DCGM_FI_DEV_GPU_TEMP");
  });
  after(() => browser?.close());

  test("the fleet answers first whether anything is wrong, then shows every GPU with units", async () => {
    await withPage("fleet", "/", async (page) => {
      await page.waitForSelector(".cell");
      await settled(page);
      const verdict = page.locator(".verdict");
      assert.notEqual(await verdict.getAttribute("data-level"), "wait");
      assert.notEqual((await verdict.locator(".answer").innerText()).trim(), "");
      const uuids = new Set(gpus.map((labels) => labels.UUID));
      const shown = await page.locator(".cell").count();
      assert.ok(shown >= uuids.size, `${shown} cells for ${uuids.size} GPUs`);
      const fresh = page.locator('.cell:not([data-condition="unknown"]):not([data-condition="lost"]):not([data-condition="hung"])').first();
      const text = await fresh.innerText();
      for (const unit of [CELSIUS, WATTS, PERCENT]) assert.match(text, unit);
      for (const cell of await page.locator(".cell").all()) {
        const condition = await cell.getAttribute("data-condition");
        assert.ok((await cell.innerText()).includes(condition), "the condition stands as a word too");
        assert.equal(await cell.locator("svg.icon").count(), 1, "and as a shape");
      }
      await simulatedBadge(page);
    });
  });

  test("a GPU's page draws its history with units", async () => {
    await withPage("gpu", `/gpu/${encodeURIComponent(freshUuid())}`, async (page) => {
      await chartsDrawn(page);
      const text = await page.locator("main").innerText();
      for (const unit of [CELSIUS, WATTS, PERCENT, /\d\s?(MiB|GiB)/u, /\d\s?MHz/u]) assert.match(text, unit);
      assert.equal(await page.locator('.panel[data-state="error"]').count(), 0, "no panel shows an error");
      await simulatedBadge(page);
    });
  });

  test("gaps in data are gaps in the line, and stay so in every range", async () => {
    const { uuid, start, end } = await missingStretch();
    const search = `?from=${new Date(start * 1000).toISOString()}&to=${new Date(end * 1000).toISOString()}`;
    await withPage("gap", `/gpu/${encodeURIComponent(uuid)}${search}`, async (page) => {
      await chartsDrawn(page);
      const gaps = await page.locator(".panel", { hasText: "Temperature" }).locator(".chart").getAttribute("data-gaps");
      assert.ok(Number(gaps) >= 1, `data-gaps is ${gaps}`);
    });
  });

  test("a drag over one chart zooms all of them, and back undoes it", async () => {
    await withPage("zoom", `/gpu/${encodeURIComponent(freshUuid())}`, async (page) => {
      await chartsDrawn(page);
      const plot = page.locator(".panel .u-over").first();
      await plot.scrollIntoViewIfNeeded();
      const box = await plot.boundingBox();
      await page.mouse.move(box.x + box.width * 0.3, box.y + box.height / 2);
      const times = page.locator(".legend .at");
      await times.first().waitFor();
      assert.ok((await times.count()) > 1, "the crosshair stands on the other charts too");
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * 0.7, box.y + box.height / 2, { steps: 4 });
      await page.mouse.up();
      await page.waitForURL(/from=\d{4}-.*to=\d{4}-/);
      await page.goBack();
      await page.waitForURL((url) => !url.searchParams.has("to"));
    });
  });

  test("a host's page shows processor, memory and its collectors", async () => {
    const host = (gpus[0]?.instance ?? (await api("query?query=up")).result[0].metric.instance).replace(/:\d+$/, "");
    await withPage("host", `/host/${encodeURIComponent(host)}`, async (page) => {
      await chartsDrawn(page);
      assert.match(await page.locator(".panel", { hasText: "CPU by mode" }).innerText(), PERCENT);
      assert.equal(await page.locator('.panel[data-state="error"]').count(), 0, "no panel shows an error");
      await simulatedBadge(page);
    });
  });

  test("a firing alert tells since when, and what to do", async () => {
    await until("an alert fires", async () => (await api("alerts")).alerts.some((alert) => alert.state === "firing" && alert.annotations.action));
    await withPage("runbook", "/alerts", async (page) => {
      const card = page.locator('.alert[data-state="firing"]', { has: page.locator(".action") }).first();
      await card.waitFor();
      const text = await card.innerText();
      assert.match(text, /What to do/);
      assert.match(text, /since .* ago/u);
      assert.match(text, /critical|warning|info/);
      await page.locator('section[aria-label="Rules"] details, section[aria-label="Rules"] .note').first().waitFor();
      assert.equal(await page.locator('section[aria-label="Rules"] .note.bad').count(), 0, "rules are loaded");
      if (SCREENSHOTS) await pictures(page, "alerts");
      await page.locator(".alert").getByRole("link", { name: "Runbook" }).first().click();
      await page.getByRole("heading", { name: "What to do" }).waitFor();
      await page.getByRole("button", { name: "Ask now" }).first().click();
      await page.locator('.ask :is(table, [role="status"])').first().waitFor();
    });
  });

  test("targets tell their state, and when they were last scraped", async () => {
    await withPage("targets", "/targets", async (page) => {
      const row = page.locator("tbody tr").first();
      await row.waitFor();
      assert.match(await page.locator("tbody").innerText(), /up[\s\S]*ago/u);
    });
  });

  test("every page has a key, and the theme is kept", async () => {
    await withPage("keys", "/", async (page) => {
      await page.waitForSelector(".verdict");
      for (const [key, path] of [["a", "/alerts"], ["t", "/targets"], ["f", "/"]]) {
        await page.keyboard.press("g");
        await page.keyboard.press(key);
        await page.waitForURL((url) => url.pathname === path);
      }
      await page.keyboard.press("?");
      await page.getByRole("dialog", { name: "Keys" }).waitFor();
      await page.keyboard.press("Escape");
      await page.keyboard.press("d");
      const theme = await page.evaluate(() => document.documentElement.dataset.theme);
      await page.reload();
      await page.waitForSelector(".verdict");
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), theme);
    });
  });

  /** Opens a page, fails on any error in it, keeps pictures if asked. */
  async function withPage(name, path, check) {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: "light" });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const errors = [];
    page.on("pageerror", (err) => errors.push(err.message));
    page.on("console", (message) => { if (message.type() === "error") errors.push(`${message.text()} (${message.location().url})`); });
    page.on("request", (request) => { if (!request.url().startsWith(URL_HUB)) errors.push(`fetched from outside: ${request.url()}`); });
    try {
      await page.goto(URL_HUB + path);
      await check(page);
      await page.setViewportSize({ width: 400, height: 860 });
      await page.waitForFunction(() => document.documentElement.scrollWidth <= innerWidth, undefined, { timeout: 5000 })
        .catch(() => assert.fail("something runs out of a 400 px window"));
      if (SCREENSHOTS) await pictures(page, name);
    } finally {
      await context.close();
    }
    assert.deepEqual(errors, []);
  }

  async function pictures(page, name) {
    await page.waitForTimeout(300);
    await page.screenshot({ path: `${SCREENSHOTS}/${name}-narrow.png`, fullPage: true });
    await page.setViewportSize({ width: 1440, height: 900 });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await page.waitForTimeout(400);
      await page.screenshot({ path: `${SCREENSHOTS}/${name}-${colorScheme}.png`, fullPage: true });
    }
  }

  function freshUuid() {
    assert.ok(gpus.length > 0, "the demo has GPUs");
    return gpus.find((labels) => labels.gpu === "0")?.UUID ?? gpus[0].UUID;
  }

  /** A GPU and a range in which its temperature is missing for some scrapes between two readings, or up to now. */
  async function missingStretch() {
    const now = Math.floor(Date.now() / 1000);
    const params = new URLSearchParams({ query: "max by (UUID) (last_over_time(DCGM_FI_DEV_GPU_TEMP[30s]))", start: String(now - 6 * 3600), end: String(now), step: "30" });
    const { result } = await api(`query_range?${params}`);
    let open;
    for (const { metric, values } of result) {
      const times = values.map(([time]) => time);
      for (let i = 1; i < times.length; i++) {
        if (times[i] - times[i - 1] >= 120) return { uuid: metric.UUID, start: times[i - 1] - 600, end: Math.min(now, times[i] + 600) };
      }
      if (now - times.at(-1) > 120) open = { uuid: metric.UUID, start: times.at(-1) - 600, end: now };
    }
    assert.ok(open, "the demo has a stretch without data in its last six hours");
    return open;
  }
});

async function settled(page) {
  await page.waitForFunction(() => document.querySelector(".verdict")?.dataset.level !== "wait");
}

async function chartsDrawn(page) {
  await settled(page);
  await page.waitForFunction(() => {
    const panels = [...document.querySelectorAll(".panels .panel")];
    return panels.length > 0 && panels.every((panel) => panel.dataset.state !== "loading") && document.querySelector(".chart canvas");
  });
}

async function simulatedBadge(page) {
  assert.ok(await page.locator("main .badge.simulated").first().isVisible(), "simulated series are marked as such");
}

async function api(path) {
  const response = await fetch(`${URL_HUB}/api/v1/${path}`);
  const body = await response.json();
  assert.equal(body.status, "success", `${path}: ${body.error}`);
  return body.data;
}

/** Waits until the hub has replayed and answers. */
async function ready() {
  await until(`${URL_HUB} is ready`, async () => (await (await fetch(`${URL_HUB}/api/watchfire/v1/status`)).json()).ready);
}

async function until(what, holds) {
  const end = Date.now() + 60_000;
  let last;
  while (Date.now() < end) {
    try {
      if (await holds()) return;
    } catch (err) {
      last = err;
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  assert.fail(`waited a minute until ${what}${last ? `: ${last.message}` : ""}`);
}
