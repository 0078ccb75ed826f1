/** Whether a page is told what happens. */
import type { JSX } from "preact";
import { t } from "../i18n/language";
import type { Link } from "./feed";

const SAID: Readonly<Record<Link, string>> = {
  live: "Live: new runs appear by themselves",
  lost: "Not connected; trying again",
  ended: "No longer live: open the address that pyrometer ui printed last",
};

/** Whether the page is told what happens; a shape and words beside the colour. */
export function Lamp({ link, said, live = SAID.live }: { readonly link: Link; readonly said: string; readonly live?: string }): JSX.Element {
  return (
    <p class={`lamp ${link}`} role="status">
      <span aria-hidden="true">{link === "live" ? "●" : "○"}</span> {t(link === "live" ? live : SAID[link])}
      {said !== "" && ` · ${said}`}
    </p>
  );
}
