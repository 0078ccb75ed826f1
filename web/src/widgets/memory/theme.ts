/** Draw anew when the colours change. */
import { useEffect, useState } from "preact/hooks";
import { onTheme } from "../../canvas/theme";

/** A number that is another one after each change of the colours. */
export function useTheme(): number {
  const [version, setVersion] = useState(0);
  useEffect(() => onTheme(() => setVersion((now) => now + 1)), []);
  return version;
}
