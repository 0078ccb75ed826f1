// @vitest-environment happy-dom
import { beforeEach, describe, expect, it } from "vitest";
import { clock, extended, joined, type Moment, MOST, shownShare, stepAxis } from "../src/dashboard/course";
import type { Running, RunningNow } from "../src/dashboard/feed";
import { addressOf, Choice, idsOf, replaceList } from "../src/dashboard/list";
import { inBothZones } from "../src/data/moments";

const RUNNING: Running = {
  id: "x",
  kind: "bench",
  target: "model.py:work",
  stage: "measuring",
  share: 0.5,
  num_samples: 3,
  step_s: 0.002,
  course: [],
};

function now(elapsed_s: number, changes: Partial<Running> = {}): RunningNow {
  return { running: { ...RUNNING, ...changes }, elapsed_s };
}

describe("the course of a run", () => {
  it("grows with every step that is told", () => {
    const course = extended(extended([], now(1)), now(2, { step_s: 0.003 }));
    expect(course).toEqual([
      { elapsed_s: 1, step_s: 0.002 },
      { elapsed_s: 2, step_s: 0.003 },
    ]);
  });

  it("leaves out what tells nothing new", () => {
    const course = extended([], now(5));
    expect(extended(course, now(5))).toBe(course);
    expect(extended(course, now(4))).toBe(course);
    expect(extended(course, now(6, { step_s: null }))).toBe(course);
    expect(extended(course, now(6, { step_s: 0 }))).toBe(course);
  });

  it("keeps its ends when it becomes long", () => {
    let course: readonly Moment[] = [];
    for (let i = 1; i <= 5 * MOST; i++) course = extended(course, now(i));
    expect(course.length).toBeLessThanOrEqual(MOST);
    expect(course[0]?.elapsed_s).toBe(1);
    expect(course.at(-1)?.elapsed_s).toBe(5 * MOST);
  });

  it("begins with what the run remembers", () => {
    const told: Running = { ...RUNNING, course: [[1, 0.01], [2, 0.02], [3, 0]] };
    const heard = [{ elapsed_s: 1.5, step_s: 0.015 }, { elapsed_s: 4, step_s: 0.04 }];
    expect(joined(told, heard).map(({ elapsed_s }) => elapsed_s)).toEqual([1, 2, 4]);
  });
});

it("counts in powers where steps differ much", () => {
  const axis = (...times: number[]) => stepAxis(times.map((step_s, i) => ({ elapsed_s: i, step_s })));
  expect(axis(0.001, 0.002).log).toBe(false);
  expect(axis(0.001, 0.1).log).toBe(true);
  for (const { low, high } of [axis(0.001), axis(0.001, 0.1), axis(0.01, 0.02)]) expect(low).toBeLessThan(high);
});

it("shows no share where none is known or more follows", () => {
  expect([null, 0, 0.5, 1, 1.2, -1].map(shownShare)).toEqual([null, 0, 0.5, null, null, 0]);
});

it("writes times as clocks do", () => {
  expect([0, 9.9, 65, 3600, 7389, -3].map(clock)).toEqual(["0:00", "0:09", "1:05", "1:00:00", "2:03:09", "0:00"]);
});

function list(ids: readonly string[], total = ids.length): string {
  const row = (id: string): string =>
    `<tr data-run="${id}"><td><input type="radio" form="compare" name="a" value="${id}" required></td>` +
    `<td><input type="radio" form="compare" name="b" value="${id}" required></td>` +
    `<td class="target"><a href="/runs/${id}">${id}</a></td></tr>`;
  return (
    `<h1><span id="num-runs">${total} runs</span></h1><section id="runs"><form id="compare"></form>` +
    `<div class="scroll"><table><tbody>${ids.map(row).join("")}</tbody></table></div></section>`
  );
}

function page(ids: readonly string[]): Document {
  return new DOMParser().parseFromString(`<!doctype html><body>${list(ids)}</body>`, "text/html");
}

describe("the list", () => {
  beforeEach(() => {
    document.body.innerHTML = list(["two", "one"]);
  });

  it("takes the place of the one before and tells what is new", () => {
    expect(replaceList(document, page(["three", "two", "one"]), new Choice())).toEqual(["three"]);
    expect(idsOf(document)).toEqual(["three", "two", "one"]);
    expect(document.getElementById("num-runs")?.textContent).toBe("3 runs");
  });

  it("keeps what was chosen, also where it is not shown", () => {
    const choice = new Choice();
    const pick = (name: string, value: string): void => {
      const radio = document.querySelector<HTMLInputElement>(`input[name=${name}][value=${value}]`);
      if (radio !== null) radio.checked = true;
    };
    pick("a", "one");
    replaceList(document, page(["two"]), choice);
    pick("b", "two");
    expect(document.querySelector<HTMLInputElement>("#compare input[type=hidden][name=a]")?.value).toBe("one");
    replaceList(document, page(["three", "two", "one"]), choice);
    expect(document.querySelector("input[type=hidden]")).toBeNull();
    const chosen = [...document.querySelectorAll<HTMLInputElement>("input[type=radio]")].filter(({ checked }) => checked);
    expect(chosen.map(({ name, value }) => `${name}=${value}`).sort()).toEqual(["a=one", "b=two"]);
  });

  it("keeps the focus on the same run", () => {
    document.querySelector<HTMLElement>('tr[data-run="one"] a')?.focus();
    replaceList(document, page(["three", "two", "one"]), new Choice());
    expect(document.activeElement?.closest<HTMLElement>("tr")?.dataset["run"]).toBe("one");
  });
});

it("asks for what a form says and leaves out what is empty", () => {
  document.body.innerHTML = '<form><input name="q" value=" a b&c "><input name="kind" value=""><input name="target" value="m.py:w"></form>';
  const form = document.querySelector("form");
  expect(form === null ? "" : addressOf(form)).toBe("/?q=+a+b%26c+&target=m.py%3Aw");
  document.body.innerHTML = "<form><input name='q' value='  '></form>";
  const empty = document.querySelector("form");
  expect(empty === null ? "" : addressOf(empty)).toBe("/");
});

describe("a moment", () => {
  it("is told in UTC and where the reader is", () => {
    expect(inBothZones("2026-11-22T16:09:30.123Z", "Asia/Tokyo")).toMatch(/^2026-11-22 16:09:30 UTC · .*\b0?1:09:30/);
    expect(inBothZones("soon")).toBeNull();
  });
});
