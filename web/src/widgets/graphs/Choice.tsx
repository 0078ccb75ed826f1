/** Which graph is shown: the compilation, and its stage. */
import type { JSX } from "preact";
import { t } from "../../i18n/language";
import type { GraphIndex } from "./content";

interface Props {
  readonly index: GraphIndex;
  readonly number: number;
  readonly onNumber: (number: number) => void;
}

export function Choice({ index, number, onNumber }: Props): JSX.Element {
  const own = index.graphs[number];
  const ids = [...new Set(index.graphs.map((one) => one.compile_id))];
  const stages = index.graphs.flatMap((one, place) => (one.compile_id === own?.compile_id ? [{ one, place }] : []));
  const pick = (id: string): void => {
    const same = index.graphs.findIndex((one) => one.compile_id === id && one.stage === own?.stage);
    onNumber(same >= 0 ? same : index.graphs.findIndex((one) => one.compile_id === id));
  };
  return (
    <>
      {ids.length > 1 && (
        <select aria-label={t("Compilation")} value={own?.compile_id} onChange={(event) => pick(event.currentTarget.value)}>
          {ids.map((id) => {
            const first = index.graphs.find((one) => one.compile_id === id);
            return (
              <option value={id} key={id}>
                {id} {first?.function} {first?.place}
              </option>
            );
          })}
        </select>
      )}
      <select aria-label={t("Stage")} value={String(number)} onChange={(event) => onNumber(Number(event.currentTarget.value))}>
        {stages.map(({ one, place }) => (
          <option value={String(place)} key={place}>
            {one.stage_title} · {t("{count} operations", { count: one.num_ops })}
            {one.num_marks > 0 ? " !" : ""}
          </option>
        ))}
      </select>
    </>
  );
}
