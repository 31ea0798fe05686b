/**
 * The input of a field, by the field's type.
 */
import type { JSX } from "preact"
import { bytes, number } from "../parts/format.ts"
import { useTexts } from "../state/texts.ts"
import { faultOf, type FormField, isSize, type Json, textOf } from "./fields.ts"

/** A value in words. */
export const useWords = () => {
  const t = useTexts().common
  return (field: FormField, value: Json): string => {
    if (typeof value === "boolean") return value ? t.yes : t.no
    if (typeof value === "number") return isSize(field) ? bytes(value) : number(value)
    return textOf(value).replaceAll("\n", ", ") || t.none
  }
}

/** Why a field's text is refused; `undefined` if it is not. */
export const useRefusal = () => {
  const t = useTexts().settings
  return (field: FormField, text: string): string | undefined => {
    const { maximum, minimum } = field
    switch (faultOf(field, text)) {
      case "number":
        return t.notANumber
      case "range":
        return t.outOfRange(number(minimum ?? 0), number(maximum ?? Number.MAX_SAFE_INTEGER))
      default:
        return undefined
    }
  }
}

/** The range of a field in words; `undefined` without one. */
export const useRange = () => {
  const t = useTexts().settings
  return ({ maximum, minimum }: FormField): string | undefined =>
    minimum === null || maximum === null ? undefined : t.range(number(minimum), number(maximum))
}

/** A description, with its code in place of backticks. */
export const described = (text: string) =>
  text.split("`").map((part, index) => index % 2 === 1 ? <code key={index}>{part}</code> : part)

type Attributes = Pick<
  JSX.IntrinsicElements["input"],
  "aria-describedby" | "aria-invalid" | "aria-label" | "class" | "id" | "placeholder" | "title"
>

/** Types whose values have several lines. */
export const severalLines: ReadonlySet<FormField["type"]> = new Set(["choices", "lines", "list", "map"])

const modes = { integer: "numeric", number: "decimal", decimal: "decimal" } as const

/** Whether a value is chosen among some. */
export const isChoice = ({ type }: FormField): boolean => type === "boolean" || type === "choice"

export const FieldInput = ({ choice, class: kind, field, onBlur, onText, rows = 3, text, unset, ...attributes }:
  & Attributes
  & {
    readonly field: FormField
    readonly text: string
    readonly onText: (text: string) => void
    readonly onBlur?: () => void
    /** The name of a choice. */
    readonly choice: (value: string) => string
    /** What no choice means; without it, one of the choices must be taken. */
    readonly unset?: string | undefined
    /** The lines of a text that has several. */
    readonly rows?: number
  }) =>
{
  const onInput = (event: { readonly currentTarget: { readonly value: string } }) => onText(event.currentTarget.value)
  if (isChoice(field)) {
    const choices = [...field.type === "boolean" ? ["true", "false"] : [], ...field.choices ?? []]
    return (
      <select {...attributes as object} value={text} onChange={onInput}>
        {unset !== undefined && <option value="">{unset}</option>}
        {choices.map((value) => <option key={value} value={value}>{choice(value)}</option>)}
      </select>
    )
  }
  const written = { ...attributes, value: text, spellcheck: false, onInput }
  if (field.type === "time") return <input {...written} type="datetime-local" />
  if (severalLines.has(field.type)) {
    const autocomplete = field.sensitive === true ? { autocomplete: "off" } as const : {}
    return <textarea {...written as object} {...autocomplete} rows={rows} class={kind ?? "code"} />
  }
  const line = {
    ...written,
    ...(kind === undefined ? {} : { class: kind }),
    ...(onBlur === undefined ? {} : { onBlur })
  }
  if (field.sensitive === true) return <input {...line} type="password" autocomplete="new-password" />
  const inputMode = Object.hasOwn(modes, field.type) ? modes[field.type as keyof typeof modes] : "text"
  return <input {...line} type="text" inputMode={inputMode} autocomplete="off" />
}
