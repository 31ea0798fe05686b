/**
 * The dialog that deletes an upstream: what names it, and whether that goes too.
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import { useMemo, useState } from "preact/hooks"
import { Dialog } from "../../parts/Dialog.tsx"
import { Failure, TextField, useWork } from "../../parts/Form.tsx"
import { useReads } from "../../parts/Loaded.tsx"
import { call, report } from "../../state/actions.ts"
import { causeText, isConflict } from "../../state/failure.ts"
import { accountName } from "../../state/names.ts"
import { readOf, reload } from "../../state/reads.ts"
import { useAtom, useValue } from "../../state/registry.ts"
import { useTexts } from "../../state/texts.ts"
import { routesAtom, type UpstreamItem } from "../../state/upstreams.ts"
import { partsOf, targetText } from "../routes/choice.ts"
import { changedBy } from "./EditUpstream.tsx"

/** The routes that name an upstream, each with whether it has another target. */
const useNaming = (upstream: string) => {
  const routes = Option.getOrUndefined(AsyncResult.value(useAtom(routesAtom)))?.routes ?? {}
  return Object.entries(routes).flatMap(([name, { targets }]) => {
    const own = targets.filter((target) => partsOf(targetText(target), name).upstream === upstream)
    return own.length === 0 ? [] : [{ name, isLast: own.length === targets.length }]
  })
}

const shownAccounts = 12

/** More accounts than this ask for their number to be typed. */
const manyAccounts = 10

/** Reads the accounts of an upstream: the first ones by name, and how many there are. */
const useAccounts = (upstream: string) =>
  useMemo(
    () =>
      readOf("admin-accounts", "list", {
        query: { upstream, page_size: shownAccounts },
        reactivityKeys: ["accounts"]
      }),
    [upstream]
  )

export const DeleteUpstream = ({ item, onClose }: {
  readonly item: UpstreamItem
  readonly onClose: () => void
}) => {
  const { common, upstreams: t } = useTexts()
  const { name } = item
  const [refusal, setRefusal] = useState<string>()
  const [isRefused, setRefused] = useState(false)
  const routes = useNaming(name)
  const reading = useAccounts(name)
  const accounts = useValue(reading)
  const { failure } = useReads([routesAtom, reading])
  const [typed, setTyped] = useState("")
  const word = accounts !== undefined && accounts.total > manyAccounts ? String(accounts.total) : undefined
  const isNamed = isRefused || routes.length > 0 || (accounts?.total ?? 0) > 0
  const [busy, remove] = useWork(async () => {
    const exit = await call((client) =>
      client["admin-upstreams"].remove({ params: { name }, headers: {}, query: isNamed ? { force: "true" } : {} })
    )
    if (Exit.isFailure(exit)) {
      setRefused(isConflict(Cause.squash(exit.cause)))
      return setRefusal(causeText(exit.cause))
    }
    const { accounts: removed, routes: gone, targets } = exit.value.removed
    await reload(...changedBy)
    report(t.deletedWith(name, removed.length, targets.length, gone))
    return onClose()
  })
  return (
    <Dialog name={common.actionOn(common.delete, name)} onClose={onClose}>
      <p>{t.deleteAsk}</p>
      {item.in_use > 0 && <p>{t.deleteRunning(item.in_use)}</p>}
      {failure}
      <Failure text={refusal} />
      {accounts !== undefined && accounts.total > 0 && (
        <>
          <p>{t.accountsGo(accounts.total)}</p>
          <ul class="names" tabIndex={0}>
            {accounts.items.map(accountName).map((each) => <li key={each}>{each}</li>)}
            {accounts.total > accounts.items.length && (
              <li class="hint">{common.andMore(accounts.total - accounts.items.length)}</li>
            )}
          </ul>
        </>
      )}
      {isNamed && (
        <>
          {routes.length > 0 && (
            <ul class="listed">
              {routes.map(({ isLast, name: route }) => <li key={route}>{isLast ? t.loses(route) : t.keeps(route)}</li>)}
            </ul>
          )}
        </>
      )}
      {word !== undefined && (
        <TextField
          label={common.typeToConfirm(word)}
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value.trim())}
        />
      )}
      <div class="actions">
        <button type="button" onClick={onClose}>{common.cancel}</button>
        <button
          type="button"
          class="danger"
          disabled={busy || (word !== undefined && typed !== word)}
          onClick={() => remove()}
        >
          {isNamed ? t.deleteAll : common.delete}
        </button>
      </div>
    </Dialog>
  )
}
