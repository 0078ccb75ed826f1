/** Filters the cards of the findings, which stand in the document, and adds to each what can be done with it. */
import { render } from "preact";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { language, t } from "../../i18n/language";
import { leaveOut } from "../../shell/notice";
import { remember, type Route } from "../../shell/router";
import { Loaded } from "../Loaded";
import type { WidgetProps } from "../widget";
import { CardTools } from "./CardTools";
import { counted, wanted, type Wish } from "./filter";

/** One finding, as Python wrote it. */
export interface FindingEntry {
  readonly card: string;
  readonly code: string;
  readonly severity: string;
  readonly family: string;
  readonly rewrite: string | null;
  readonly markdown: string;
}

interface Payload {
  readonly findings: readonly FindingEntry[];
}

export function Evidence({ blocks, place, route }: WidgetProps): JSX.Element {
  return (
    <Loaded<Payload> blocks={blocks} name={place["block"] ?? ""}>
      {({ findings }) => <Filter findings={findings} route={route} />}
    </Loaded>
  );
}

interface FilterProps {
  readonly findings: readonly FindingEntry[];
  readonly route: Route;
}

const PAGE = "findings";
const NO_WISH: Wish = { severity: "", family: "", text: "" };

function Filter({ findings, route }: FilterProps): JSX.Element {
  const [wish, setWish] = useState(NO_WISH);
  useEffect(() => {
    const asked = Object.keys(NO_WISH).some((key) => key in route.parameters);
    if (route.page !== PAGE || (!asked && route.from !== PAGE)) return;
    const wrong = (["severity", "family"] as const).filter((key) => key in route.parameters && !findings.some((one) => one[key] === route.parameters[key]));
    leaveOut(wrong.map((key) => `${key}=${route.parameters[key]}`));
    const given = (key: keyof Wish): string => (wrong.some((one) => one === key) ? "" : (route.parameters[key] ?? ""));
    setWish({ severity: given("severity"), family: given("family"), text: given("text") });
  }, [route]);
  const shown = findings.filter((finding) => wanted({ ...finding, text: textOf(finding) }, wish));
  useEffect(() => {
    for (const finding of findings) addTools(finding);
  }, [findings, language()]);
  useEffect(() => {
    const kept = new Set(shown.map((finding) => finding.card));
    for (const { card } of findings) document.getElementById(card)?.classList.toggle("unwanted", !kept.has(card));
    // Only when the wish changes: a link to a card shows it whatever the wish.
  }, [findings, wish]);
  const change = (part: Partial<Wish>): void => {
    const next = { ...wish, ...part };
    setWish(next);
    remember(PAGE, Object.fromEntries(Object.entries(next).map(([key, value]) => [key, value || null])), !("text" in part));
  };
  return (
    <div class="tools evidence" role="search" aria-label={t("Filter the findings")}>
      <input
        type="search"
        placeholder={t("Search the findings")}
        aria-label={t("Search the findings")}
        value={wish.text}
        onInput={(event) => change({ text: event.currentTarget.value })}
        onKeyDown={(event) => event.key === "Escape" && change({ text: "" })}
      />
      <Choice
        label={t("Severity")}
        values={findings.map((finding) => finding.severity)}
        chosen={wish.severity}
        onChoice={(severity) => change({ severity })}
      />
      <Choice
        label={t("Family")}
        values={findings.map((finding) => finding.family)}
        chosen={wish.family}
        onChoice={(family) => change({ family })}
      />
      <span class="note" role="status">
        {t("{shown} of {all} shown", { shown: shown.length, all: findings.length })}
      </span>
    </div>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly values: readonly string[];
  readonly chosen: string;
  readonly onChoice: (value: string) => void;
}

function Choice({ label, values, chosen, onChoice }: ChoiceProps): JSX.Element | null {
  const choices = counted(values);
  if (choices.length < 2) return null;
  return (
    <span class="choice" role="group" aria-label={label}>
      {choices.map(([value, number]) => (
        <button
          key={value}
          type="button"
          aria-pressed={chosen === value}
          onClick={() => onChoice(chosen === value ? "" : value)}
        >
          {t(value)} <small>{number}</small>
        </button>
      ))}
    </span>
  );
}

/** Everything that a card says, without what was added to it. */
function textOf(finding: FindingEntry): string {
  const card = document.getElementById(finding.card);
  const said = [...(card?.children ?? [])].filter((part) => !part.matches(".finding-tools"));
  return [finding.code, finding.severity, finding.family, ...said.map((part) => part.textContent)].join(" ");
}

function addTools(finding: FindingEntry): void {
  const card = document.getElementById(finding.card);
  if (card === null) return;
  const holder = card.querySelector(":scope > .finding-tools") ?? document.createElement("div");
  holder.className = "finding-tools";
  const before = card.querySelector(":scope > .proofs, :scope > .facts, :scope > .note");
  if (holder.parentElement !== card) card.insertBefore(holder, before);
  render(<CardTools finding={finding} />, holder);
}
