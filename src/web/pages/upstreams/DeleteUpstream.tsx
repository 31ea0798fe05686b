/**
 * The dialog that deletes an upstream: what names it, and whether that goes too.
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import { useState } from "preact/hooks"
import { Dialog } from "../../parts/Dialog.tsx"
import { Failure, useWork } from "../../parts/Form.tsx"
import { call, reload, report } from "../../state/actions.ts"
import { causeText, isConflict } from "../../state/failure.ts"
import { useTexts } from "../../state/preferences.ts"
import { useAtom } from "../../state/registry.ts"
import { routesAtom, type UpstreamItem } from "../../state/upstreams.ts"
import { partsOf } from "../routes/choice.ts"
import { changedBy } from "./EditUpstream.tsx"

/** The routes that name an upstream, each with whether it has another target. */
const useNaming = (upstream: string) => {
  const routes = Option.getOrUndefined(AsyncResult.value(useAtom(routesAtom)))?.routes ?? {}
  return Object.entries(routes).flatMap(([name, { targets }]) => {
    const own = targets.filter((target) => partsOf(target, name).upstream === upstream)
    return own.length === 0 ? [] : [{ name, isLast: own.length === targets.length }]
  })
}

export const DeleteUpstream = ({ item: { name }, onClose }: {
  readonly item: UpstreamItem
  readonly onClose: () => void
}) => {
  const { common, upstreams: t } = useTexts()
  const [refusal, setRefusal] = useState<string>()
  const [isNamed, setNamed] = useState(false)
  const routes = useNaming(name)
  const [busy, remove] = useWork(async () => {
    const exit = await call((client) =>
      client["admin-upstreams"].remove({ params: { name }, headers: {}, query: isNamed ? { force: "true" } : {} })
    )
    if (Exit.isFailure(exit)) {
      setNamed(isConflict(Cause.squash(exit.cause)))
      return setRefusal(causeText(exit.cause))
    }
    const { accounts, routes: gone, targets } = exit.value.removed
    reload(...changedBy)
    report(t.deletedWith(name, accounts.length, targets.length, gone))
    return onClose()
  })
  return (
    <Dialog name={common.actionOn(common.delete, name)} onClose={onClose}>
      <p>{t.deleteAsk}</p>
      <Failure text={refusal} />
      {isNamed && (
        <>
          <p>{t.forceAsk(name)}</p>
          {routes.length > 0 && (
            <ul class="listed">
              {routes.map(({ isLast, name: route }) => <li key={route}>{isLast ? t.loses(route) : t.keeps(route)}</li>)}
            </ul>
          )}
        </>
      )}
      <div class="actions">
        <button type="button" onClick={onClose}>{common.cancel}</button>
        <button type="button" class="danger" disabled={busy} onClick={() => remove()}>
          {isNamed ? t.deleteAll : common.delete}
        </button>
      </div>
    </Dialog>
  )
}
