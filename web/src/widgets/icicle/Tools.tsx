/** Everything that can be chosen, above the drawing. */
import type { JSX, RefObject } from "preact";
import { t } from "../../i18n/language";
import type { Hidden } from "./hiding";
import type { Look } from "./look";
import { type Weight, WEIGHTS } from "./tree";

interface Props {
  readonly look: Look;
  readonly weight: Weight;
  /** Weights that the recording has any of. */
  readonly weights: readonly Weight[];
  readonly ranks: readonly string[];
  readonly compared: boolean;
  /** Whether it is a compiler's steps that are drawn, and no calls. */
  readonly steps: boolean;
  readonly hideable: readonly Hidden[];
  readonly search: RefObject<HTMLInputElement | null>;
  readonly onLook: (change: Partial<Look>) => void;
  readonly onFindNext: () => void;
  readonly onFocus: () => void;
  readonly onPicture: () => void;
  readonly onFolded: () => void;
}

const WEIGHT_TEXTS: Readonly<Record<Weight, string>> = {
  host: "Host time",
  device: "Device time",
  calls: "Calls",
};
const HIDE_TITLES: Readonly<Record<Hidden, string>> = {
  chains: "Python functions of which one callee takes nearly all",
  frames: "Python functions; what they call hangs on their callers",
  modules: "Calls of modules; what they call hangs on their callers",
  runtime: "Calls into the device's runtime and driver",
};
const HIDE_TEXTS: Readonly<Record<Hidden, string>> = {
  chains: "pass-through",
  frames: "Python",
  modules: "modules",
  runtime: "runtime calls",
};

export function Tools(props: Props): JSX.Element {
  const { look, compared, ranks, onLook } = props;
  return (
    <>
      {ranks.length > 1 && (
        <Choice
          label={t("Recording")}
          value={look.rank || (ranks[0] ?? "")}
          options={ranks.map((rank) => [rank, /^\d+$/.test(rank) ? t("Rank {rank}", { rank }) : t(rank)])}
          onChoose={(rank) => onLook({ rank, node: "" })}
        />
      )}
      <Choice
        label={t("Width")}
        value={props.weight}
        options={WEIGHTS.filter((one) => props.weights.includes(one)).map((one) => [one, t(props.steps && one === "host" ? "Time" : WEIGHT_TEXTS[one])])}
        onChoose={(weight) => onLook({ weight: weight as Weight })}
      />
      {compared && (
        <Choice
          label={t("Side")}
          value={look.side}
          options={[
            ["after", t("as wide as after")],
            ["before", t("as wide as before")],
          ]}
          onChoose={(side) => onLook({ side: side as Look["side"] })}
        />
      )}
      <Choice
        label={t("Order")}
        value={look.order}
        options={[
          ["size", t("largest first")],
          ["call", t("by first call")],
        ]}
        onChoose={(order) => onLook({ order: order as Look["order"] })}
      />
      <Hiding {...props} />
      <Finding {...props} />
      <button type="button" onClick={props.onPicture} title={t("Save the drawing as a picture")}>
        PNG
      </button>
      <button type="button" onClick={props.onFolded} title={t("Save as folded stacks, for flame graph tools")}>
        {t("Folded")}
      </button>
    </>
  );
}

function Hiding({ look, hideable, onLook }: Props): JSX.Element | null {
  if (hideable.length === 0) return null;
  const without = (one: Hidden): Hidden[] => look.hide.filter((other) => other !== one);
  return (
    <span class="icicle-hide" role="group" aria-label={t("Hide")}>
      {t("Hide")}
      {hideable.map((one) => {
        const hidden = look.hide.includes(one);
        const hide = hidden ? without(one) : [...look.hide, one];
        return (
          <button
            key={one}
            type="button"
            aria-pressed={hidden}
            title={t(HIDE_TITLES[one])}
            onClick={() => onLook({ hide })}
          >
            {t(HIDE_TEXTS[one])}
          </button>
        );
      })}
    </span>
  );
}

function Finding({ look, search, onLook, onFindNext, onFocus }: Props): JSX.Element {
  return (
    <input
      ref={search}
      type="search"
      class="icicle-find"
      value={look.find}
      placeholder={t("Find: text or /expression/")}
      aria-label={t("Find by name")}
      onInput={(event) => onLook({ find: event.currentTarget.value })}
      onKeyDown={(event) => {
        if (event.key === "Enter") onFindNext();
        if (event.key !== "Escape") return;
        event.preventDefault();
        onLook({ find: "" });
        onFocus();
      }}
    />
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [string, string])[];
  readonly onChoose: (value: string) => void;
}

function Choice({ label, value, options, onChoose }: ChoiceProps): JSX.Element {
  return (
    <select aria-label={label} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
      {options.map(([key, text]) => (
        <option key={key} value={key}>
          {text}
        </option>
      ))}
    </select>
  );
}
