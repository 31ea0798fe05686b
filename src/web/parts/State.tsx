/**
 * An account's state: a sign and words, never colour alone.
 */
import { useTexts } from "../state/preferences.ts"

export const states = ["ready", "cooling", "out", "disabled", "failed"] as const
export type AccountState = (typeof states)[number]

const signs: Readonly<Record<AccountState, { readonly sign: string; readonly tone: string }>> = {
  ready: { sign: "●", tone: "good" },
  cooling: { sign: "◔", tone: "warn" },
  out: { sign: "▲", tone: "bad" },
  disabled: { sign: "○", tone: "muted" },
  failed: { sign: "✕", tone: "bad" }
}

/** A word with a sign in front. */
export const Badge = ({ sign, text, tone }: {
  readonly sign: string
  readonly text: string
  readonly tone: string
}) => (
  <span class={`badge ${tone}`}>
    <span aria-hidden="true">{sign}</span> {text}
  </span>
)

export const State = ({ state }: { readonly state: AccountState }) => {
  const t = useTexts()
  return <Badge {...signs[state]} text={t.states[state]} />
}
