/**
 * The dialog that adds a route or changes one.
 */
import * as Exit from "effect/Exit"
import { useRef, useState } from "preact/hooks"
import { Dialog } from "../../parts/Dialog.tsx"
import { Check, Failure, Field, Form, Select, TextField } from "../../parts/Form.tsx"
import { call, reload, report } from "../../state/actions.ts"
import { causeText } from "../../state/failure.ts"
import { useTexts } from "../../state/preferences.ts"
import type { Route, UpstreamItem } from "../../state/upstreams.ts"
import { compact, partsOf, routeNow } from "./choice.ts"
import { TargetList } from "./TargetList.tsx"
import { Verdict } from "./TargetState.tsx"

export const changedBy = ["routes", "upstreams", "config", "host"] as const

const refusals = ["context_length", "content_filter"] as const

/**
 * Changes one route of those that are configured now: `undefined` deletes it. `before` is the route as it was shown; a route that has
 * changed since is left as it is. Resolves to why nothing was saved.
 */
export const saveRoute = async (
  name: string,
  before: Route | undefined,
  route: Route | undefined,
  texts: { readonly exists: (name: string) => string; readonly changedMeanwhile: string }
): Promise<string | undefined> => {
  const current = await call((client) => client["admin-routes"].get())
  if (Exit.isFailure(current)) return causeText(current.cause)
  const { revision, routes } = current.value
  if (JSON.stringify(routes[name]) !== JSON.stringify(before)) {
    reload(...changedBy)
    return before === undefined ? texts.exists(name) : texts.changedMeanwhile
  }
  const entries = before === undefined && route !== undefined
    ? [...Object.entries(routes), [name, route] as const]
    : Object.entries(routes).flatMap(([each, old]) =>
      each !== name ? [[each, old] as const] : route === undefined ? [] : [[each, route] as const]
    )
  const next = Object.fromEntries(entries.map(([each, value]) => [each, compact(value)]))
  const saved = await call((client) =>
    client["admin-routes"].set({ headers: { "if-match": `"${revision}"` }, payload: { routes: next } })
  )
  reload(...changedBy)
  return Exit.isFailure(saved) ? causeText(saved.cause) : undefined
}

/** Every target that can be chosen. */
const targetsOf = (upstreams: ReadonlyArray<UpstreamItem>): ReadonlyArray<string> =>
  upstreams.flatMap(({ models, name }) => models.map((model) => `${name}/${model}`))

export const EditRoute = ({ name, onClose, route: before, upstreams }: {
  /** The route that is changed; absent to add one. */
  readonly name?: string
  /** The route as it was shown; of a new route its first targets. */
  readonly route: Route
  readonly upstreams: ReadonlyArray<UpstreamItem>
  readonly onClose: () => void
}) => {
  const { common, routes: t } = useTexts()
  const [route, setRoute] = useState(before)
  const [title, setTitle] = useState(name ?? before.targets.map((target) => partsOf(target, "").model)[0] ?? "")
  // A text, in which numbers are typed digit by digit.
  const [wait, setWait] = useState(String(before.wait))
  const [failure, setFailure] = useState<string>()
  const adding = useRef<HTMLInputElement>(null)
  const set = (change: Partial<Route>) => {
    setFailure(undefined)
    setRoute((now) => ({ ...now, ...change }))
  }
  const seconds = Number(wait)
  const now = routeNow(title, { ...route, wait: Number.isFinite(seconds) ? seconds : 0 }, upstreams)
  const add = () => {
    const target = adding.current?.value.trim() ?? ""
    adding.current?.focus()
    if (target === "") return
    if (route.targets.includes(target)) return setFailure(t.twice(target))
    set({ targets: [...route.targets, target] })
    adding.current!.value = ""
  }
  const save = async () => {
    const own = name ?? title.trim()
    if (own === "") return setFailure(t.noName)
    if (!Number.isFinite(seconds)) return setFailure(t.notNumber(wait))
    // A target that was written and not added yet belongs to the route too.
    const written = adding.current?.value.trim() ?? ""
    const targets = written === "" || route.targets.includes(written) ? route.targets : [...route.targets, written]
    const refused = await saveRoute(
      own,
      name === undefined ? undefined : before,
      { ...route, targets, wait: seconds },
      t
    )
    if (refused !== undefined) return setFailure(refused)
    report(name === undefined ? t.added(own) : t.changed(own))
    return onClose()
  }
  return (
    <Dialog name={name === undefined ? t.add : common.actionOn(t.edit, name)} onClose={onClose} wide>
      <Form onSubmit={save}>
        {(busy) => (
          <>
            {name === undefined && (
              <TextField
                label={t.name}
                class="code"
                spellcheck={false}
                placeholder="qwen3"
                value={title}
                onInput={(event) => setTitle(event.currentTarget.value)}
              />
            )}
            <div class="stack tight">
              <p class="label">{t.targets}</p>
              {route.targets.length === 0
                ? <p class="hint">{t.noTargets}</p>
                : (
                  <>
                    <TargetList
                      now={now}
                      onTargets={(targets) => set({ targets })}
                      onEmptied={() => adding.current?.focus()}
                    />
                    <Verdict now={now} wait={seconds} />
                  </>
                )}
            </div>
            <div class="row">
              <Field grow label={t.newTarget}>
                <input
                  ref={adding}
                  type="text"
                  class="code"
                  list="route-targets"
                  autocomplete="off"
                  spellcheck={false}
                  placeholder={t.targetHint}
                  onKeyDown={(event) => {
                    if (event.key !== "Enter") return
                    event.preventDefault()
                    add()
                  }}
                />
              </Field>
              <datalist id="route-targets">
                {targetsOf(upstreams).filter((target) => !route.targets.includes(target))
                  .map((target) => <option key={target} value={target} />)}
              </datalist>
              <button type="button" onClick={add}>{t.addTarget}</button>
            </div>
            <div class="row">
              <Select
                label={t.spread}
                value={route.spread}
                options={[["order", t.spreads.order], ["even", t.spreads.even]]}
                onValue={(spread) => set({ spread })}
              />
              <TextField
                label={t.wait}
                inputMode="decimal"
                value={wait}
                onInput={(event) => setWait(event.currentTarget.value)}
              />
              <Select
                label={t.sticky}
                value={String(route.sticky)}
                options={[["false", t.stickies.no], ["true", t.stickies.account], ["target", t.stickies.target]]}
                onValue={(sticky) => set({ sticky: sticky === "target" ? sticky : sticky === "true" })}
              />
            </div>
            <fieldset class="stack tight">
              <legend class="label">{t.alsoOn}</legend>
              <div class="checks">
                {refusals.map((refusal) => (
                  <Check
                    key={refusal}
                    label={t.refusals[refusal]}
                    checked={route.also_on.includes(refusal)}
                    onChange={(event) => {
                      const others = route.also_on.filter((each) => each !== refusal)
                      set({ also_on: event.currentTarget.checked ? [...others, refusal] : others })
                    }}
                  />
                ))}
              </div>
            </fieldset>
            <Failure text={failure} />
            <div class="actions end">
              <button type="button" onClick={onClose}>{common.cancel}</button>
              <button type="submit" class="primary" disabled={busy}>{common.save}</button>
            </div>
          </>
        )}
      </Form>
    </Dialog>
  )
}
