/** Tabs, of which one is open; arrows go from one to the next. */
import type { ComponentChildren, JSX } from "preact";
import { useId, useRef } from "preact/hooks";

/** One of them. */
export interface Tab {
  readonly key: string;
  readonly title: string;
  /** How much there is, as it is written. */
  readonly number: string;
}

interface Props {
  readonly tabs: readonly Tab[];
  readonly chosen: string;
  readonly label: string;
  readonly onChoose: (key: string) => void;
  readonly children: ComponentChildren;
}

const STEPS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 };

export function Tabs({ tabs, chosen, label, onChoose, children }: Props): JSX.Element {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const press = (event: KeyboardEvent): void => {
    const step = STEPS[event.key];
    if (step === undefined) return;
    const place = tabs.findIndex(({ key }) => key === chosen);
    const next = tabs[(place + step + tabs.length) % tabs.length];
    if (next === undefined) return;
    event.preventDefault();
    onChoose(next.key);
    list.current?.querySelector<HTMLElement>(`[data-key="${CSS.escape(next.key)}"]`)?.focus();
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={press}>
        {tabs.map(({ key, title, number }) => (
          <button key={key} type="button" role="tab" data-key={key} id={`${id}-${key}`} aria-selected={key === chosen} aria-controls={`${id}-panel`}
            tabIndex={key === chosen ? 0 : -1} onClick={() => onChoose(key)}>
            {title} <small>{number}</small>
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${chosen}`}>{children}</div>
    </>
  );
}
