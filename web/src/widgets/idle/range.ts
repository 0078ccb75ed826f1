/** What of the timeline to show around a gap. */

/** Parameters of the timeline: the gap in the middle third, within the trace. */
export function around(rank: string, start: number, lasts: number, span: number): Record<string, string> {
  const from = Math.max(0, start - lasts);
  const to = Math.min(Math.max(span, start + lasts), start + 2 * lasts);
  return { rank, from: String(Math.floor(from)), to: String(Math.ceil(to)) };
}
