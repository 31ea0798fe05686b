/**
 * How much of a limit is used, in words.
 */
import type { UsedLimit } from "../state/limits.ts"
import type { Texts } from "../texts/en.ts"
import { fullMoney, money, number } from "./format.ts"

/** Says how much of a limit is used: of money with its currency, of a limit always all digits. */
export const usedText = (each: UsedLimit, t: Texts["keys"], currency: string | undefined): string =>
  each.kind === "cost"
    ? t.used(each, money(String(each.used), currency), fullMoney(String(each.limit), currency))
    : t.used(each, number(Number(each.used)), number(Number(each.limit)))
