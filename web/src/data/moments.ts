/** When something was, for readers in any time zone. */

/** Tell of every time in a part of the document, beside what it shows, the same in UTC and where the reader is. */
export function labelTimes(root: ParentNode): void {
  for (const time of root.querySelectorAll<HTMLTimeElement>("time[datetime]")) {
    const said = inBothZones(time.dateTime);
    if (said !== null) time.title = said;
  }
}

/** `2026-11-22 16:09:30 UTC · 22/11/2026, 17:09:30 CET`; null where it is no moment. */
export function inBothZones(moment: string, zone?: string): string | null {
  const at = new Date(moment);
  if (Number.isNaN(at.getTime())) return null;
  const utc = at.toISOString().slice(0, 19).replace("T", " ");
  return `${utc} UTC · ${at.toLocaleString(undefined, { dateStyle: "short", timeStyle: "long", timeZone: zone })}`;
}
