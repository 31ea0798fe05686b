/**
 * How a request stands, or how it ended.
 */
import { Badge } from "../../parts/State.tsx"
import { useTexts } from "../../state/preferences.ts"
import type { RequestItem } from "../../state/types.ts"

const signs: Readonly<Record<string, { readonly sign: string; readonly tone: string }>> = {
  open: { sign: "…", tone: "" },
  ok: { sign: "✓", tone: "good" },
  failed: { sign: "✕", tone: "bad" },
  cancelled: { sign: "↩", tone: "muted" }
}

export const Outcome = ({ item }: { readonly item: RequestItem }) => {
  const t = useTexts().requests
  const { sign, tone } = signs[item.outcome] ?? { sign: "", tone: "" }
  return (
    <Badge sign={sign} tone={tone} text={item.outcome === "open" ? t.states(item.state) : t.outcomes(item.outcome)} />
  )
}
