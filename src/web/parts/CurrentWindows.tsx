/**
 * What is used now of the quota and the budgets of an account or an upstream.
 */
import { useCurrency } from "../state/currency.ts"
import { clockAtom } from "../state/live.ts"
import { useAtom } from "../state/registry.ts"
import { type Usable, Windows } from "./Windows.tsx"

/** Redrawn every second, without what surrounds it. */
export const CurrentWindows = ({ of }: { readonly of: Usable }) => (
  <Windows quota={of.quota} budgets={of.budgets} now={useAtom(clockAtom)} currency={useCurrency()} />
)
