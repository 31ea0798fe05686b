/**
 * Times within a request.
 */
import { inUnit } from "../../parts/format.ts"

/** A time since the request began: `0.4 ms`, `14 ms`, `1.181 s`. */
export const moment = (milliseconds: number): string =>
  milliseconds < 999.5
    ? inUnit(String(Number(milliseconds.toFixed(milliseconds < 9.95 ? 1 : 0))), "ms")
    : inUnit((milliseconds / 1000).toFixed(3), "s")
