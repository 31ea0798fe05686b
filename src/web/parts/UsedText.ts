/**
 * How much of a limit is used, in words.
 */
import { useCurrency } from "../state/currency.ts"
import type { UsedLimit } from "../state/limits.ts"
import { useTexts } from "../state/preferences.ts"
import { fullMoney, money, number } from "./format.ts"

/** Says how much of a limit is used: of money with its currency, of a limit always all digits. */
export const useUsedText = (): (limit: UsedLimit) => string => {
  const t = useTexts().keys
  const currency = useCurrency()
  return (each) =>
    each.kind === "cost"
      ? t.used(each, money(String(each.used), currency), fullMoney(String(each.limit), currency))
      : t.used(each, number(Number(each.used)), number(Number(each.limit)))
}
