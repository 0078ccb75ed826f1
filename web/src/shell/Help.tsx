/** All keys, over the page. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { t } from "../i18n/language";
import { KEYS } from "./keys";

interface Props {
  readonly open: boolean;
  readonly onClose: () => void;
}

export function Help({ open, onClose }: Props): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={onClose}>
      <h2 id="help-title">{t("Keys")}</h2>
      <dl>
        {KEYS.map(([keys, does]) => (
          <div key={does}>
            <dt>
              {keys.map((name) => (
                <kbd key={name}>{name}</kbd>
              ))}
            </dt>
            <dd>{t(does)}</dd>
          </div>
        ))}
      </dl>
      <p class="note">
        {t("Drawings also follow the pointer: drag to move, hold Ctrl and turn the wheel to come closer.")}
      </p>
      <form method="dialog">
        <button type="submit" onClick={printAll}>{t("Print all pages")}</button>
        <button type="submit">{t("Close")}</button>
      </form>
    </dialog>
  );
}

/** A page prints its summary; here all of it, once. */
function printAll(): void {
  document.body.classList.add("print-all");
  addEventListener("afterprint", () => document.body.classList.remove("print-all"), { once: true });
  setTimeout(() => print()); // once the dialog is closed
}
