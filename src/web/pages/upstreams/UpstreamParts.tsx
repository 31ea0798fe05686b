/**
 * What the list of upstreams and the page of an upstream share.
 */
import { useWork } from "../../parts/Form.tsx"
import { duration } from "../../parts/format.ts"
import { act, report } from "../../state/actions.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import type { UpstreamItem } from "../../state/upstreams.ts"
import { changedBy } from "./EditUpstream.tsx"

export const Accounts = ({ item: { accounts, name, needs_accounts } }: { readonly item: UpstreamItem }) => {
  const { states, upstreams: t } = useTexts()
  const others = (["cooling", "out", "disabled"] as const).filter((state) => accounts[state] > 0)
  if (!needs_accounts) return <span class="hint">{t.needsNone}</span>
  return (
    <div class="states">
      <a href={linkTo("accounts", undefined, { upstream: name })} aria-label={t.accountsOf(name, accounts.ready)}>
        {t.ready(accounts.ready)}
      </a>
      {others.map((state) => (
        <p key={state} class="hint">
          <a class="of-row" href={linkTo("accounts", undefined, { upstream: name, state })}>
            {t.inState(accounts[state], states[state])}
          </a>
        </p>
      ))}
    </div>
  )
}

/** Enabling, disabling and testing an upstream. */
export const useUpstreamActions = ({ enabled, name }: UpstreamItem) => {
  const t = useTexts().upstreams
  const enable = (on: boolean, isUndone = false): Promise<unknown> =>
    act(
      (client) => client["admin-upstreams"].change({ params: { name }, headers: {}, payload: { enabled: on } }),
      {
        done: () => on ? t.enabled(name) : t.disabled(name),
        ...(isUndone ? {} : { undo: () => void enable(!on, true) }),
        subjects: changedBy
      }
    )
  const [busy, toggle] = useWork(() => enable(!enabled))
  const [isTesting, test] = useWork(async () => {
    const reply = await act((client) => client["admin-upstreams"].testChanges({ params: { name }, payload: {} }), {})
    if (reply === undefined) return
    const { message, response_time, success } = reply
    report(success ? t.testPassed(name, duration(response_time)) : t.testFailed(name, message), !success)
  })
  return { busy, isTesting, test, toggle }
}
