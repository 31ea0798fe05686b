/**
 * The limits of a key as sentences: how much of what, in which time, and what follows.
 */
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { EntryForm } from "../../forms/Entry.tsx"
import { FieldInput, useRefusal } from "../../forms/FieldInput.tsx"
import { plainName } from "../../forms/fields.ts"
import { Check } from "../../parts/Form.tsx"
import { Icon } from "../../parts/Icon.tsx"
import { useTexts } from "../../state/texts.ts"
import { limitPath, limitRules, type LimitTable } from "./draft.ts"

/** What a sentence limits; its amount is a text of the form. */
interface Sentence {
  readonly kind: string
  readonly window: string
}

const isSame = (a: Sentence, b: Sentence): boolean => a.kind === b.kind && a.window === b.window

/** The window of a new sentence. */
const usual = "day"

interface Shown {
  readonly form: EntryForm
  readonly currency: string | undefined
  readonly models: ReadonlyArray<string>
}

/** What follows when a limit of a window is used up. */
const Then = ({ form, models, window }: Pick<Shown, "form" | "models"> & { readonly window: string }) => {
  const t = useTexts().keys
  const path = limitPath(window, "fallback")
  const chosen = form.text(path)
  return (
    <>
      <span>{t.followed}</span>
      <select
        aria-label={t.limitOf("fallback", t.windowOf(window))}
        title={form.fields.find((each) => each.path === path)?.description}
        value={chosen}
        onChange={(event) => form.set(path, event.currentTarget.value)}
      >
        <option value="">{t.refuse}</option>
        {[...new Set([...chosen === "" ? [] : [chosen], ...models])].map((model) => (
          <option key={model} value={model}>{t.useModel(model)}</option>
        ))}
      </select>
    </>
  )
}

/** Whether requests reserve the most that they can use of a window. */
const Strict = ({ form, window }: Pick<Shown, "form"> & { readonly window: string }) => {
  const path = limitPath(window, "strict")
  return (
    <Check
      label={useTexts().keys.strictly}
      title={form.fields.find((each) => each.path === path)?.description}
      checked={form.text(path) === "true"}
      onChange={(event) => form.set(path, String(event.currentTarget.checked))}
    />
  )
}

/** A choice of a sentence; what other sentences have is out of reach. */
const Choice = ({ isTaken, name, onValue, options, value }: {
  readonly name: string
  readonly value: string
  readonly options: ReadonlyArray<readonly [value: string, text: string]>
  readonly isTaken: (value: string) => boolean
  readonly onValue: (value: string) => void
}) => (
  <select aria-label={name} value={value} onChange={(event) => onValue(event.currentTarget.value)}>
    {options.map(([each, text]) => <option key={each} value={each} disabled={isTaken(each)}>{text}</option>)}
  </select>
)

export const Limits = ({ currency, form, models, table }: Shown & { readonly table: LimitTable }) => {
  const { common, keys: t } = useTexts()
  const refusalOf = useRefusal()
  const id = useId()
  const all = [usual, ...table.windows.filter((window) => window !== usual)].flatMap((window) =>
    table.kinds.map((kind): Sentence => ({ kind, window }))
  )
  const list = useRef<HTMLFieldSetElement>(null)
  /** What takes the focus when the sentences are drawn. */
  const focused = useRef<string>(undefined)
  const change = (next: ReadonlyArray<Sentence>, focus: string | undefined) => {
    focused.current = focus
    setSentences(next)
  }
  useLayoutEffect(() => {
    if (focused.current !== undefined) list.current?.querySelector<HTMLElement>(focused.current)?.focus()
    focused.current = undefined
  })
  const textOf = ({ kind, window }: Sentence) => form.text(limitPath(window, kind))
  const [sentences, setSentences] = useState<ReadonlyArray<Sentence>>(() => all.filter((each) => textOf(each) !== ""))
  const kinds = table.kinds.filter((kind) =>
    kind !== "cost" || currency !== undefined || sentences.some((each) => each.kind === kind)
  )
  const isTaken = (sentence: Sentence) => sentences.some((each) => isSame(each, sentence))
  const free = all.find((each) => kinds.includes(each.kind) && !isTaken(each))
  const put = (of: Sentence, to: Sentence | undefined) => {
    const next = sentences.flatMap((each) => isSame(each, of) ? to ?? [] : [each])
    const text = textOf(of)
    form.set(limitPath(of.window, of.kind), "")
    if (to !== undefined) form.set(limitPath(to.window, to.kind), text)
    // What follows goes with the last sentence of its window.
    if (next.every(({ window }) => window !== of.window)) {
      const isNew = to !== undefined && sentences.every(({ window }) => window !== to.window)
      for (const rule of limitRules) {
        if (isNew) form.set(limitPath(to.window, rule), form.text(limitPath(of.window, rule)))
        form.set(limitPath(of.window, rule), "")
      }
    }
    change(next, to === undefined ? ".add" : undefined)
  }
  const kindText = (kind: string) => kind === "cost" ? currency ?? t.kindOf(kind) : t.kindOf(kind).toLowerCase()
  return (
    <fieldset ref={list} class="stack limits">
      <legend class="label">{t.limits}</legend>
      {sentences.map((each, index) => {
        const { kind, window } = each
        const path = limitPath(window, kind)
        const field = form.fields.find((of) => of.path === path)!
        const refusal = refusalOf(field, form.text(path))
        const isFirst = sentences.findIndex((of) => of.window === window) === index
        const name = t.limitOf(kind, t.windowOf(window))
        return (
          // A sentence keeps its place, whatever it limits.
          <div key={index} class="limit">
            <span>{t.atMost}</span>
            <FieldInput
              field={field}
              text={form.text(path)}
              choice={plainName}
              aria-label={name}
              aria-invalid={refusal !== undefined}
              aria-describedby={refusal === undefined ? undefined : `${id}-${index}`}
              title={field.description}
              onText={(text) => form.set(path, text)}
              onBlur={() => form.separate(path)}
            />
            <Choice
              name={t.countedOf(name)}
              value={kind}
              options={kinds.map((of) => [of, kindText(of)])}
              isTaken={(of) => of !== kind && isTaken({ window, kind: of })}
              onValue={(of) => put(each, { window, kind: of })}
            />
            <Choice
              name={t.timeOf(name)}
              value={window}
              options={table.windows.map((of) => [of, t.windowOf(of)])}
              isTaken={(of) => of !== window && isTaken({ window: of, kind })}
              onValue={(of) => put(each, { window: of, kind })}
            />
            {isFirst && <Then form={form} models={models} window={window} />}
            <button
              type="button"
              class="quiet icon-only"
              aria-label={common.actionOn(common.delete, name)}
              onClick={() => put(each, undefined)}
            >
              <Icon name="close" />
            </button>
            {refusal !== undefined && <span id={`${id}-${index}`} class="hint refused">{refusal}</span>}
            {isFirst && <Strict form={form} window={window} />}
          </div>
        )
      })}
      {free !== undefined && (
        <button
          type="button"
          class="start add"
          onClick={() => change([...sentences, free], ".limit:last-of-type > input")}
        >
          {t.addLimit}
        </button>
      )}
    </fieldset>
  )
}
