import { expect, it } from "vitest";
import { formatBytes, formatCount, formatNs, formatSeconds, formatShare, significant } from "../src/data/quantity";

it("rounds before it counts digits, as the terminal does", () => {
  expect(significant(99.96)).toBe("100");
  expect(significant(0.9997)).toBe("1.00");
  expect(significant(1234.5)).toBe("1235");
  expect(significant(0.012345)).toBe("0.0123");
  expect(significant(0)).toBe("0");
  expect(significant(-31.94)).toBe("-31.9");
});

it("chooses the unit by size", () => {
  expect(formatNs(31_900_000)).toBe("31.9 ms");
  expect(formatNs(999_960)).toBe("1.00 ms");
  expect(formatNs(0)).toBe("0 ns");
  expect(formatSeconds(0.00123)).toBe("1.23 ms");
  expect(formatBytes(1536)).toBe("1.50 KiB");
  expect(formatBytes(1023)).toBe("1023 B");
  expect(formatBytes(2 ** 20)).toBe("1.00 MiB");
  expect(formatShare(0.1234)).toBe("12.3 %");
  expect(formatCount(1234567)).toBe("1,234,567");
});
