import { beforeEach, describe, expect, it } from "vitest";
import { CHINESE } from "../src/i18n/chinese";
import { language, onLanguage, paired, setLanguage, startLanguage, t } from "../src/i18n/language";
import { inLanguage } from "../src/i18n/static";

declare global {
  interface ImportMeta {
    glob(pattern: string | string[], options: object): Record<string, string>;
  }
}

const sources = import.meta.glob(["../src/**/*.ts", "../src/**/*.tsx", "!../src/i18n/*"], { query: "?raw", import: "default", eager: true });
const templates = import.meta.glob("../../src/pyrometer/report/templates/*.j2", { query: "?raw", import: "default", eager: true });

const chapters = import.meta.glob("../../src/pyrometer/report/chapters/*.py", { query: "?raw", import: "default", eager: true });

const texts = (file: string): string[] =>
  [...file.matchAll(/\bt\(\s*("(?:[^"\\]|\\.)*")/g)].map((match) => JSON.parse(match[1] ?? '""') as string);
const headings = (file: string): string[] =>
  [...file.matchAll(/<(?:h2|h4|figcaption|summary|th|b)(?: [^>]*)?>([^<{]+)</g)].map((match) => (match[1] ?? "").trim());
const titles = (file: string): string[] =>
  [...file.matchAll(/\bChapter\(\s*"[^"]*",\s*"([^"{]+)"/g)].map((match) => match[1] ?? "");
const holes = (text: string): string[] => (text.match(/\{\w+\}/g) ?? []).sort();

describe("the dictionary", () => {
  it("is looked for in all of the script, all templates and all chapters", () => {
    expect(Object.keys(sources).length).toBeGreaterThan(40);
    expect(Object.keys(templates).length).toBeGreaterThan(3);
    expect(Object.values(chapters).flatMap(titles).length).toBeGreaterThan(20);
  });

  it("has every text of the interface", () => {
    const missing = Object.entries(sources).flatMap(([path, file]) =>
      texts(file).filter((text) => !Object.hasOwn(CHINESE, text)).map((text) => `${path}: ${text}`),
    );
    expect(missing).toEqual([]);
  });

  it("has every fixed heading of the static part", () => {
    const all = Object.entries(templates).flatMap(([path, file]) =>
      headings(file).filter((text) => text !== "" && !/^[a-z]+:$|—/.test(text)).map((text) => [path, text] as const),
    );
    expect(all.filter(([, text]) => !Object.hasOwn(CHINESE, text)).map(([path, text]) => `${path}: ${text}`)).toEqual([]);
  });

  it("has every fixed title of a chapter", () => {
    const missing = Object.values(chapters).flatMap(titles).filter((text) => !Object.hasOwn(CHINESE, text));
    expect(missing).toEqual([]);
  });

  it("keeps the places of values", () => {
    const wrong = Object.entries(CHINESE).filter(([english, chinese]) => {
      const [wanted, found] = [holes(english), holes(chinese)];
      return wanted.some((hole) => !found.includes(hole)) || found.some((hole) => !wanted.includes(hole));
    });
    expect(wrong).toEqual([]);
  });
});

describe("two tables of texts", () => {
  it("make a dictionary, in which what has no translation stays English", () => {
    expect(paired(["One.", "Two.", "Three."], ["一。", "二。"])).toEqual({ "One.": "一。", "Two.": "二。", "Three.": "Three." });
    expect(paired([], ["一。"])).toEqual({});
  });
});

describe("the language", () => {
  beforeEach(async () => {
    await startLanguage(() => Promise.resolve({ Overview: "概览", "{n} of {all}": "{all} 中的 {n}", "One.": "一。", "Two.": "二。", "Rank {n}": "第 {n} 位" }), ["en"]);
  });

  it("fills in values, and takes no property of objects for a text", async () => {
    await setLanguage("zh");
    expect(t("Overview")).toBe("概览");
    expect(t("{n} of {all}", { n: 1, all: 2 })).toBe("2 中的 1");
    expect(t("constructor")).toBe("constructor");
    expect(t("unknown {n}", { n: 3 })).toBe("unknown 3");
    await setLanguage("en");
    expect(t("Overview")).toBe("Overview");
  });

  it("tells those who asked, once for each change", async () => {
    let told = 0;
    const stop = onLanguage(() => { told += 1; });
    await setLanguage("zh");
    await setLanguage("zh");
    await setLanguage("en");
    stop();
    await setLanguage("zh");
    expect(told).toBe(2);
    await setLanguage("en");
  });

  it("follows what the browser prefers", async () => {
    await startLanguage(() => Promise.resolve({}), ["zh-TW", "en"]);
    expect(language()).toBe("zh");
    await setLanguage("en");
  });

  it("translates a static text as a whole, or sentence by sentence, or not at all", async () => {
    await setLanguage("zh");
    expect(inLanguage("  Overview\n", "zh")).toBe("  概览\n");
    expect(inLanguage(" One. Two.", "zh")).toBe(" 一。二。");
    expect(inLanguage("One. Three.", "zh")).toBe("One. Three.");
    expect(inLanguage(" Rank 1,024 ", "zh")).toBe(" 第 1,024 位 ");
    expect(inLanguage("Rang 1", "zh")).toBe("Rang 1");
    expect(inLanguage("One. Two.", "en")).toBe("One. Two.");
    await setLanguage("en");
  });
});
