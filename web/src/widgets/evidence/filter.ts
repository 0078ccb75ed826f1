/** Which findings a reader wants to see; pure, so that it can be tested without a page. */

/** What the filter looks at. */
export interface Filterable {
  readonly severity: string;
  readonly family: string;
  /** Everything that its card says. */
  readonly text: string;
}

/** What the reader asked for; empty strings ask for everything. */
export interface Wish {
  readonly severity: string;
  readonly family: string;
  readonly text: string;
}

/** Whether a finding is wanted: each word of the text must occur in it, in upper or lower case. */
export function wanted(finding: Filterable, { severity, family, text }: Wish): boolean {
  const said = finding.text.toLowerCase();
  return (
    (severity === "" || finding.severity === severity) &&
    (family === "" || finding.family === family) &&
    text.toLowerCase().split(/\s+/).every((word) => said.includes(word))
  );
}

/** The values that occur, each once, in the order of their first occurrence, with their number. */
export function counted(values: readonly string[]): [value: string, number: number][] {
  const found = new Map<string, number>();
  for (const value of values) found.set(value, (found.get(value) ?? 0) + 1);
  return [...found];
}
