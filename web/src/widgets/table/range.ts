/** Which rows of a long table are in the page, and how wide its columns are. */
import { type Column, isWords, type Rows } from "./model";
import { shown } from "./write";

/** Height of a row, in CSS pixels; the style sheet says the same. */
export const ROW_PX = 30;

/** Rows beyond both edges that are in the page already, so that scrolling does not show gaps. */
const BEYOND = 8;
/** Rows that are looked at for the width of a column. */
const SAMPLES = 400;
const MARGIN_CH = 2.7;
/** Width of a character of each font, in widths of the digit 0. */
const CODE_CH = 0.9;
const TEXT_CH = 0.84;
/** Room for the mark of sorting beside a heading. */
const MARK_CH = 2.2;
const BAR_CH = 8;
/** Figures beside bars are as wide as `< 0.1 %`, so that the bars stand below each other; the style sheet says the same. */
const FIGURE_CH = 7;
const SPARK_CH = 14;

/** From row `first`, and up to but without row `end`. */
export interface Span {
  readonly first: number;
  readonly end: number;
}

/** Rows in the page at a scroll position. */
export function rowsInView(scrolled: number, height: number, number: number): Span {
  const first = Math.max(0, Math.min(Math.floor(scrolled / ROW_PX), number) - BEYOND);
  return { first, end: Math.min(number, Math.ceil((scrolled + height) / ROW_PX) + BEYOND) };
}

/** Never more rows than this are in the page at once. */
export function mostInPage(height: number): number {
  return Math.ceil(height / ROW_PX) + 2 * BEYOND + 1;
}

/** Where to scroll so that a row is in view; where one is already when it is. */
export function scrollFor(row: number, scrolled: number, height: number): number {
  return Math.min(row * ROW_PX, Math.max(scrolled, (row + 1) * ROW_PX - height));
}

/** Width of a column in characters: what most of its cells need, within reason. */
export function widthOf(column: Column, title: string, rows: Rows): number {
  const step = Math.max(1, Math.floor(rows.length / SAMPLES));
  let longest = column.kind === "spark" ? SPARK_CH : 0;
  if (column.kind !== "spark") {
    for (let row = 0; row < rows.length; row += step) longest = Math.max(longest, shown(column, rows.cell(column.key, row)).length);
  }
  if (column.kind === "share") longest = Math.max(longest, FIGURE_CH) + BAR_CH;
  if (isWords(column.kind)) longest = Math.min(longest, column.wide ?? 24) * (column.kind === "code" ? CODE_CH : TEXT_CH);
  return Math.max(longest, headingWidth(title)) + MARGIN_CH;
}

/** A first column up to this width takes its part of spare room; a wider one, of long names, takes all of it. */
export const SHORT_CH = 20;

/** Widths in CSS: words give way by a quarter before the table scrolls; the first column, which then stays, takes less than half. */
export function roomsOf(widths: readonly number[], words: readonly boolean[]): string[] {
  const sum = (ofWords: boolean): number => widths.reduce((all, width, i) => all + (words[i] === ofWords ? width : 0), 0);
  const [figures, wordy] = [sum(false), sum(true)];
  return widths.map((width, i) => {
    const room = words[i] === true ? `clamp(${width * 0.75}ch, (100cqw - ${figures}ch) * ${width / wordy}, ${width}ch)` : `${width}ch`;
    return i === 0 ? `min(${room}, 44cqw)` : room;
  });
}

/** Headings have two lines: the width of the longest word, or of a good half of them all. */
function headingWidth(title: string): number {
  const words = title.split(" ").map((word) => word.length);
  const wide = /[\u3000-\u9fff]/.test(title) ? 1.9 : 0.95; // Chinese characters are twice as wide
  const half = title.length > 12 ? title.length * 0.56 : title.length;
  return Math.max(...words.map((length) => Math.min(length, 14)), Math.min(half, 20)) * wide * TEXT_CH + MARK_CH;
}
