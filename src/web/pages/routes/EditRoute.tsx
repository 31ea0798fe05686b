/**
 * The dialog that adds a route or changes one.
 */
import * as Effect from "effect/Effect"
import { useMemo, useRef, useState } from "preact/hooks"
import { EntryField, EntryFields, otherPaths, useEntry, WithFields } from "../../forms/Entry.tsx"
import type { FormField } from "../../forms/fields.ts"
import { FormDialog } from "../../parts/Dialog.tsx"
import { Failure, Field, TextField } from "../../parts/Form.tsx"
import { report } from "../../state/actions.ts"
import { saveEntry } from "../../state/mapEntry.ts"
import { useTexts } from "../../state/texts.ts"
import type { Route, UpstreamItem } from "../../state/upstreams.ts"
import { compact, partsOf, routeNow, targetText, weighted, type WrittenRoute } from "./choice.ts"
import { TargetList } from "./TargetList.tsx"
import { Verdict } from "./TargetState.tsx"

export const changedBy = ["routes", "upstreams", "config", "host"] as const

/**
 * Sets a route; `undefined` deletes it. `before` is the route as it was shown: one that has changed since is left as it is. Resolves to why
 * nothing was saved.
 */
export const saveRoute = (
  fields: ReadonlyArray<FormField>,
  name: string,
  before: Route | undefined,
  route: WrittenRoute | undefined,
  texts: { readonly exists: (name: string) => string; readonly changedMeanwhile: string }
): Promise<string | undefined> =>
  saveEntry(
    {
      read: (client) =>
        Effect.map(client["admin-routes"].get(), ({ revision, routes }) => ({ entries: routes, revision })),
      write: (client, entries, headers) => {
        const routes = Object.fromEntries(
          Object.entries(entries).map(([each, value]) => [each, compact(fields, value)])
        )
        return client["admin-routes"].set({ headers, payload: { routes } })
      },
      subjects: changedBy
    },
    name,
    before,
    route,
    before === undefined ? texts.exists(name) : texts.changedMeanwhile
  )

/** Every target that can be chosen. */
const targetsOf = (upstreams: ReadonlyArray<UpstreamItem>): ReadonlyArray<string> =>
  upstreams.flatMap(({ models, name }) => models.map((model) => `${name}/${model}`))

const spreads = ["even", "weighted"] as const

/** The fields side by side, the first ones first. */
const row = ["spread", "wait", "sticky"]

interface Editing {
  /** The route that is changed; absent to add one. */
  readonly name?: string
  /** The route as it was shown; of a new route its first targets. */
  readonly route: Route
  readonly upstreams: ReadonlyArray<UpstreamItem>
  readonly onClose: () => void
}

const Editor = ({ fields, name, onClose, route: before, title: dialogName, upstreams }: Editing & {
  readonly fields: ReadonlyArray<FormField>
  readonly title: string
}) => {
  const { routes: t, settings } = useTexts()
  const form = useEntry(useMemo(() => fields.filter(({ path }) => path !== "targets"), []), before)
  const [targets, setTargets] = useState(before.targets)
  const [title, setTitle] = useState(
    name ?? before.targets.map((target) => partsOf(targetText(target), "").model)[0] ?? ""
  )
  const [failure, setFailure] = useState<string>()
  const adding = useRef<HTMLInputElement>(null)
  const texts = targets.map(targetText)
  const change = (next: Route["targets"]) => {
    setFailure(undefined)
    setTargets(next)
  }
  const seconds = form.isFaulty ? 0 : Number(form.text("wait"))
  const now = routeNow(
    title,
    { targets, spread: spreads.find((each) => each === form.text("spread")) ?? "order", wait: seconds },
    upstreams
  )
  const add = () => {
    const target = adding.current?.value.trim() ?? ""
    adding.current?.focus()
    if (target === "") return
    if (texts.includes(target)) return setFailure(t.twice(target))
    change([...targets, target])
    adding.current!.value = ""
  }
  const save = async () => {
    const own = name ?? title.trim()
    if (own === "") return t.noName
    if (form.isFaulty) return settings.refused
    // A target that was written and not added yet belongs to the route too.
    const written = adding.current?.value.trim() ?? ""
    const all = written === "" || texts.includes(written) ? targets : [...targets, written]
    const present = name === undefined ? undefined : before
    const refused = await saveRoute(fields, own, present, { ...form.values(), targets: all }, t)
    if (refused === undefined) report(name === undefined ? t.added(own) : t.changed(own))
    return refused
  }
  return (
    <FormDialog name={dialogName} onClose={onClose} onSave={save} wide>
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
        {targets.length === 0
          ? <p class="hint">{t.noTargets}</p>
          : (
            <>
              <TargetList
                now={now}
                onTargets={(next) => change(next.map((text) => targets[texts.indexOf(text)] ?? text))}
                onWeight={(text, weight) =>
                  change(targets.map((target) => targetText(target) === text ? weighted(target, weight) : target))}
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
              if (event.key !== "Enter") {
                return
              }
              event.preventDefault()
              add()
            }}
          />
        </Field>
        <datalist id="route-targets">
          {targetsOf(upstreams).filter((target) => !texts.includes(target))
            .map((target) => <option key={target} value={target} />)}
        </datalist>
        <button type="button" onClick={add}>{t.addTarget}</button>
      </div>
      <Failure text={failure} />
      <EntryFields
        whole
        form={form}
        names={t.fields}
        paths={[...row, ...otherPaths(form.fields, [...row, "also_on"])]}
      />
      <EntryField form={form} names={t.fields} path="also_on" />
    </FormDialog>
  )
}

export const EditRoute = (editing: Editing) => {
  const { common, routes: t } = useTexts()
  const title = editing.name === undefined ? t.add : common.actionOn(t.edit, editing.name)
  return (
    <WithFields of="routes" name={title} onClose={editing.onClose}>
      {(fields) => <Editor {...editing} fields={fields} title={title} />}
    </WithFields>
  )
}
