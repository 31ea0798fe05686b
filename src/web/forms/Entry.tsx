/**
 * Forms of the configuration's entries, made from the gateway's description of their fields.
 */
import * as Duration from "effect/Duration"
import type { ComponentChildren } from "preact"
import { useId, useMemo, useState } from "preact/hooks"
import { Dialog } from "../parts/Dialog.tsx"
import { Check } from "../parts/Form.tsx"
import { number } from "../parts/format.ts"
import { Loaded } from "../parts/Loaded.tsx"
import { readOf } from "../state/reads.ts"
import { useValue } from "../state/registry.ts"
import { useTexts } from "../state/texts.ts"
import { described, FieldInput, severalLines, useRange, useRefusal, useWords } from "./FieldInput.tsx"
import {
  changesOf,
  type Entry,
  type EntryKind,
  faultOf,
  type FormField,
  linesOf,
  patchOf,
  plainName,
  type Texts,
  textsOf,
  valueOf,
  wholeNumber
} from "./fields.ts"

/** The fields of the settings and of all entries. They stay while pages change. */
export const fieldsAtom = readOf("admin-settings", "fields", {
  reactivityKeys: ["settings"],
  timeToLive: Duration.infinity
})

/** The fields of a kind of entries; `undefined` until they are known. */
export const useFields = (kind: EntryKind): ReadonlyArray<FormField> | undefined => useValue(fieldsAtom)?.entries[kind]

/** The form of an entry. */
export interface EntryForm {
  readonly fields: ReadonlyArray<FormField>
  readonly text: (path: string) => string
  readonly set: (path: string, text: string) => void
  /** Shows a whole number with separators of thousands. */
  readonly separate: (path: string) => void
  /** Whether a text is no value of its field. */
  readonly isFaulty: boolean
  /** The changed values. Unchanged ones are left out, so that a concurrent change is not reverted. */
  readonly changes: () => Entry
  /** All values; `null` where one is not set. */
  readonly values: () => Entry
}

/** A written whole number with separators of thousands. */
const separated = ({ type }: FormField, text: string): string => {
  const value = type === "integer" ? wholeNumber(text) : undefined
  return value === undefined ? text : number(value)
}

/**
 * The form of an entry. It opens with `start` laid over the entry, which counts as changed. `of` names the entry where a form has several;
 * what was typed for one of them stays while another one is shown.
 */
export const useEntry = (
  fields: ReadonlyArray<FormField>,
  entry: Entry,
  { of = "", start }: { readonly of?: string; readonly start?: Entry } = {}
): EntryForm => {
  const before = useMemo(() => textsOf(fields, entry), [of])
  const opened = useMemo((): Texts => {
    const texts = textsOf(fields, { ...entry, ...start })
    return new Map(fields.map((field) => [field.path, separated(field, texts.get(field.path) ?? "")]))
  }, [of])
  const [drafts, setDrafts] = useState<ReadonlyMap<string, Texts>>(new Map())
  const texts = drafts.get(of) ?? opened
  const set = (path: string, text: string) =>
    setDrafts((now) => new Map(now).set(of, new Map(now.get(of) ?? opened).set(path, text)))
  return {
    fields,
    text: (path) => texts.get(path) ?? "",
    set,
    separate: (path) => {
      const field = fields.find((each) => each.path === path)
      if (field !== undefined) set(path, separated(field, texts.get(path) ?? ""))
    },
    isFaulty: fields.some((field) => faultOf(field, texts.get(field.path) ?? "") !== undefined),
    changes: () => patchOf(changesOf(fields, before, texts), texts),
    values: () => patchOf(fields, texts)
  }
}

/** The names of an entry's fields by their paths, and of choices behind the path of theirs. */
export type Names = (path: string) => string | undefined

/** The name of a field; one of its path without a name in the texts. */
export const nameOf = (names: Names, path: string): string => names(path) ?? plainName(path)

/** The name of a choice; the choice itself without a name in the texts. */
export const choiceName = (names: Names, path: string, choice: unknown): string =>
  names(`${path}.${String(choice)}`) ?? String(choice)

interface Shown {
  readonly form: EntryForm
  readonly names: Names
  /** Whether every choice with a name in the texts has a value, so that nothing stands for none. */
  readonly whole?: boolean
}

/** A field with its name. One without a name in the texts has its description and its range below; of others the pointer shows them. */
export const EntryField = ({ class: kind, form, grow = false, names, path, placeholder, rows, whole = false }:
  & Shown
  & {
    readonly path: string
    readonly grow?: boolean
    readonly class?: string
    readonly rows?: number
    readonly placeholder?: string
  }) =>
{
  const { settings: t, upstreams: { byDefault } } = useTexts()
  const words = useWords()
  const refusalOf = useRefusal()
  const rangeOf = useRange()
  const id = useId()
  const field = form.fields.find((each) => each.path === path)
  if (field === undefined) return null
  const text = form.text(path)
  const name = names(path)
  const choice = (value: string): string =>
    names(`${path}.${value}`) ?? (field.type === "boolean" ? words(field, valueOf(field, value)) : value)
  const refusal = refusalOf(field, text)
  const about = [field.description, rangeOf(field)].filter((each) => each !== undefined && each !== "").join(" · ")
  if (field.type === "choices") {
    const chosen = linesOf(text)
    return (
      <fieldset class="stack tight" title={about}>
        <legend class="label">{name ?? plainName(path)}</legend>
        <div class="checks">
          {field.choices?.map((value) => (
            <Check
              key={value}
              label={choice(value)}
              checked={chosen.includes(value)}
              onChange={(event) => {
                const others = chosen.filter((each) => each !== value)
                form.set(path, (event.currentTarget.checked ? [...others, value] : others).join("\n"))
              }}
            />
          ))}
        </div>
        {name === undefined && <p class="hint">{described(about)}</p>}
      </fieldset>
    )
  }
  const unset = names(`${path}.`) ??
    (field.default === null || field.default === "" ? byDefault : t.byDefault(words(field, field.default)))
  return (
    <div class={`field ${grow ? "grow" : ""}`}>
      <label for={id}>{name ?? plainName(path)}</label>
      <FieldInput
        id={id}
        field={field}
        text={text}
        choice={choice}
        unset={whole && name !== undefined ? undefined : unset}
        title={about}
        aria-invalid={refusal !== undefined}
        aria-describedby={refusal !== undefined || name === undefined ? `${id}-about` : undefined}
        onText={(next) => form.set(path, next)}
        onBlur={() => form.separate(path)}
        {...kind === undefined ? severalLines.has(field.type) ? { class: "code short" } : {} : { class: kind }}
        {...rows === undefined ? {} : { rows }}
        {...placeholder === undefined ? {} : { placeholder }}
      />
      {(refusal !== undefined || name === undefined) && (
        <p class="hint" id={`${id}-about`}>
          {refusal !== undefined && <span class="refused">{refusal}{" "}</span>}
          {name === undefined && described(about)}
        </p>
      )}
    </div>
  )
}

/** Fields side by side; those without a name in the texts stand below, each with what it is. */
export const EntryFields = ({ paths, ...shown }: Shown & { readonly paths: ReadonlyArray<string> }) => {
  const [named, others] = [true, false].map((isNamed) =>
    paths.filter((path) => (shown.names(path) !== undefined) === isNamed)
  )
  return (
    <>
      {named!.length > 0 && (
        <div class="row">
          {named!.map((path) => <EntryField key={path} path={path} rows={1} {...shown} />)}
        </div>
      )}
      {others!.map((path) => <EntryField key={path} path={path} rows={2} {...shown} />)}
    </>
  )
}

/** The paths of the fields that an editor does not place itself. */
export const otherPaths = (fields: ReadonlyArray<FormField>, placed: ReadonlyArray<string>): ReadonlyArray<string> =>
  fields.map(({ path }) => path)
    .filter((path) => !path.includes("[].") && !placed.some((each) => path === each || path.startsWith(`${each}.`)))

/**
 * Draws an editor once the fields of its entry are known. Until then a dialog of its `name` holds the place, so that it does not open over
 * what was begun meanwhile; it says why they cannot be read.
 */
export const WithFields = ({ children, name, of, onClose }: {
  readonly of: EntryKind
  readonly name: string
  readonly onClose: () => void
  readonly children: (fields: ReadonlyArray<FormField>) => ComponentChildren
}) => {
  const { common } = useTexts()
  const fields = useFields(of)
  return fields !== undefined ? <>{children(fields)}</> : (
    <Dialog name={name} onClose={onClose}>
      <Loaded atom={fieldsAtom}>{() => null}</Loaded>
      <div class="actions">
        <button type="button" onClick={onClose}>{common.cancel}</button>
      </div>
    </Dialog>
  )
}
