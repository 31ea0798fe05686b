/**
 * The state of an upstream as a sign and words.
 */
import { standingOf } from "../state/standing.ts"
import { useTexts } from "../state/texts.ts"
import type { UpstreamItem } from "../state/upstreams.ts"
import { BackIn, Badge } from "./Badge.tsx"
import { Since } from "./Time.tsx"

const signs = {
  ready: { sign: "●", tone: "good" },
  cooled: { sign: "◔", tone: "warn" },
  probe: { sign: "◔", tone: "warn" },
  disabled: { sign: "○", tone: "muted" },
  noAccount: { sign: "▲", tone: "bad" },
  away: { sign: "▲", tone: "bad" },
  found: { sign: "▲", tone: "warn" }
} as const

/** When a cooled upstream is tried again. */
const CooledUntil = ({ item: { cooled_until, state } }: { readonly item: UpstreamItem }) => {
  const t = useTexts().upstreams
  if (state !== "cooled" || cooled_until === null) return null
  const now = Date.now()
  const seconds = (Date.parse(cooled_until) - now) / 1000
  return seconds > 0
    ? <BackIn seconds={seconds} receivedAt={now} />
    : <span class="hint">{` ${t.probed}`}</span>
}

/** An upstream's state; also why it does not serve, and when it is tried again. */
export const UpstreamBadge = ({ item }: { readonly item: UpstreamItem }) => {
  const { reason: reasonText, upstreams: t } = useTexts()
  const { away, findings, reason } = item
  const shown = standingOf(item, Date.now())
  // What is known of a server that does not answer is said by its state.
  const others = shown === "away" ? [] : findings
  return (
    <>
      <Badge {...signs[shown]} text={t.states[shown === "probe" ? "cooled" : shown]} />
      {shown === "away" && away !== null && (
        <span class="hint">
          {` ${reasonText(away.reason)} · `}
          <Since at={away.since} />
        </span>
      )}
      <CooledUntil item={item} />
      {shown !== "disabled" && reason !== null && <p class="hint why">{reasonText(reason)}</p>}
      {shown !== "disabled" && others.map((finding) => <p key={finding} class="hint why">{finding}</p>)}
    </>
  )
}
