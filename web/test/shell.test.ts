// @vitest-environment happy-dom
import { describe, expect, it } from "vitest";
import { actionOf } from "../src/shell/keys";
import { neighbour, pageOfElement, pagesOf, standsOn } from "../src/shell/pages";
import { formatRoute, parseRoute } from "../src/shell/router";
import { chosenTheme, chooseTheme, nextTheme } from "../src/shell/theme";
import { counted, wanted } from "../src/widgets/evidence/filter";

const made = (html: string): HTMLElement => {
  document.body.innerHTML = html;
  return document.body;
};

describe("pages", () => {
  const pages = [{ name: "overview", title: "Overview" }, { name: "memory", title: "Memory" }];

  it("come from the list of pages, in its order", () => {
    const root = made('<nav class="pages"><a href="#/overview">Overview</a><a href="#/memory">Memory</a><a href="#x">X</a></nav>');
    expect(pagesOf(root)).toEqual(pages);
  });

  it("have neighbours, and ends", () => {
    expect(neighbour(pages, "overview", 1)).toBe("memory");
    expect(neighbour(pages, "memory", 1)).toBe("memory");
    expect(neighbour(pages, "overview", -1)).toBe("overview");
    expect(neighbour([], "overview", 1)).toBe("overview");
  });

  it("show an element where the reader is, else where most is told about it", () => {
    const root = made('<section data-page="overview quality"><p id="inside"></p></section><p id="outside"></p>');
    const inside = root.querySelector("#inside");
    const outside = root.querySelector("#outside");
    if (inside === null || outside === null) throw new Error("not made");
    expect(pageOfElement(inside, undefined)).toBe("quality");
    expect(pageOfElement(inside, "overview")).toBe("overview");
    expect(pageOfElement(inside, "memory")).toBe("quality");
    expect(pageOfElement(outside, "memory")).toBeUndefined();
    expect(standsOn(root.querySelector("section") as HTMLElement, "qual")).toBe(false);
  });
});

describe("routes", () => {
  it("survive odd text", () => {
    const route = { page: "findings", parameters: { text: "</script>?&=#%" } };
    expect(parseRoute(formatRoute(route))).toEqual(route);
    expect(parseRoute("#/%E0%A4%A")?.page).toBe("%E0%A4%A");
  });
});

describe("keys", () => {
  const press = (key: string, target: HTMLElement, more: KeyboardEventInit = {}): KeyboardEvent => {
    const event = new KeyboardEvent("keydown", { key, cancelable: true, ...more });
    Object.defineProperty(event, "target", { value: target });
    return event;
  };

  it("do nothing while the reader writes", () => {
    expect(actionOf(press("]", document.body))).toBe("next");
    expect(actionOf(press("]", document.createElement("input")))).toBeNull();
    expect(actionOf(press("?", document.createElement("select")))).toBeNull();
  });

  it("leave the browser's own and what a widget took", () => {
    expect(actionOf(press("/", document.body, { ctrlKey: true }))).toBeNull();
    const taken = press("/", document.body);
    taken.preventDefault();
    expect(actionOf(taken)).toBeNull();
  });
});

describe("the theme", () => {
  it("goes round, and is kept", () => {
    expect([nextTheme("auto"), nextTheme("light"), nextTheme("dark")]).toEqual(["light", "dark", "auto"]);
    chooseTheme("dark");
    expect([chosenTheme(), document.documentElement.dataset["theme"]]).toEqual(["dark", "dark"]);
    chooseTheme("auto");
    expect([chosenTheme(), document.documentElement.dataset["theme"]]).toEqual(["auto", undefined]);
  });

  it("is the system's where what was kept is nonsense", () => {
    localStorage.setItem("pyrometer.theme", "purple");
    expect(chosenTheme()).toBe("auto");
  });
});

describe("the filter of findings", () => {
  const finding = { severity: "warning", family: "data", text: "PYR301 data-waits 48 % of a step" };

  it("wants all words, in upper or lower case", () => {
    expect(wanted(finding, { severity: "", family: "", text: "" })).toBe(true);
    expect(wanted(finding, { severity: "", family: "", text: "STEP pyr301 " })).toBe(true);
    expect(wanted(finding, { severity: "", family: "", text: "step pyr302" })).toBe(false);
    expect(wanted(finding, { severity: "error", family: "", text: "" })).toBe(false);
    expect(wanted(finding, { severity: "warning", family: "data", text: "waits" })).toBe(true);
  });

  it("counts what occurs", () => {
    expect(counted(["data", "host", "data"])).toEqual([["data", 2], ["host", 1]]);
  });
});
