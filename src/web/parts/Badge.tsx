/**
 * States as a sign and words, never as a colour alone.
 */
import type { ComponentChildren } from "preact"
import type { AccountItem, RequestItem } from "../state/client.ts"
import { type ChangedAccount, clockAtom } from "../state/live.ts"
import { useAtom } from "../state/registry.ts"
import { useTexts } from "../state/texts.ts"
import { countdown } from "./format.ts"
import { Sign } from "./Icon.tsx"
import { Since } from "./Time.tsx"

type Signed = { readonly sign: string; readonly tone: string }

/** A word with a sign in front. */
export const Badge = ({ sign, text, tone }: Signed & { readonly text: ComponentChildren }) => (
  <span class={`badge ${tone}`}>
    <Sign of={sign} /> {text}
  </span>
)

/** The states of an account, of which it has one. */
export const accountStates = ["ready", "cooling", "out", "disabled"] as const
export type AccountState = (typeof accountStates)[number]

export const accountSigns: Readonly<Record<AccountState | "failed", Signed>> = {
  ready: { sign: "●", tone: "good" },
  cooling: { sign: "◔", tone: "warn" },
  out: { sign: "▲", tone: "bad" },
  disabled: { sign: "○", tone: "muted" },
  failed: { sign: "✕", tone: "bad" }
}

/** An account's state in one word. Being disabled ranks first. */
export const stateOf = ({ disabled, health }: Pick<AccountItem, "disabled" | "health">): AccountState =>
  disabled ? "disabled" : health

/** Whether an account that serves failed its last test. A failed test is no state: the account serves until the upstream refuses it. */
export const hasFailedTest = (item: Pick<AccountItem, "disabled" | "health" | "test_status">): boolean =>
  item.test_status === "failed" && stateOf(item) === "ready"

/** Redrawn every second, without what surrounds it. */
export const BackIn = ({ receivedAt, seconds }: { readonly seconds: number; readonly receivedAt: number }) => {
  const t = useTexts()
  const left = Math.max(0, seconds - (useAtom(clockAtom) - receivedAt) / 1000)
  return <span class="hint">{` ${t.backIn(countdown(left))}`}</span>
}

/** An account's state; while it is out of rotation, also why, since when, and when it comes back. */
export const AccountBadge = ({ item, receivedAt }: {
  readonly item: Pick<
    ChangedAccount,
    "disabled" | "health" | "health_reason" | "health_since" | "recovery_seconds" | "test_status"
  >
  /** When the page received `item`, in milliseconds of the page's clock. */
  readonly receivedAt: number
}) => {
  const t = useTexts()
  const state = stateOf(item)
  const isHeldBack = item.health !== "ready" && !item.disabled
  return (
    <>
      <Badge {...accountSigns[state]} text={t.states[state]} />
      {hasFailedTest(item) && (
        <>
          {" "}
          <Badge {...accountSigns.failed} text={t.states.failed} />
        </>
      )}
      {isHeldBack && item.recovery_seconds !== null && (
        <BackIn seconds={item.recovery_seconds} receivedAt={receivedAt} />
      )}
      {isHeldBack && item.health_reason !== null && (
        <>
          {" "}
          <span class="hint clip" title={t.reason(item.health_reason)}>{t.reason(item.health_reason)}</span>
        </>
      )}
      {isHeldBack && typeof item.health_since === "number" && (
        <>
          {" "}
          <Since at={item.health_since} />
        </>
      )}
    </>
  )
}

export const outcomeSigns = {
  open: { sign: "…", tone: "" },
  ok: { sign: "✓", tone: "good" },
  failed: { sign: "✕", tone: "bad" },
  cancelled: { sign: "↩", tone: "muted" }
} as const satisfies Readonly<Record<string, Signed>>

/** The state of a running request, or the outcome of a finished one. */
export const RequestBadge = ({ item: { outcome, state } }: { readonly item: RequestItem }) => {
  const t = useTexts().requests
  const text = outcome === "open" ? t.states(state) : t.outcomes(outcome)
  return <Badge {...outcomeSigns[outcome]} text={text} />
}
