/**
 * A setting in the form: an input for the configured value, what it does, and the value in effect while nothing is configured.
 */
import { bytes, number } from "../../parts/format.ts"
import { useTexts } from "../../state/preferences.ts"
import { faultOf, type Field, isSize, plainName, textOf } from "./fields.ts"

/** The setting's value in words. */
const useWords = () => {
  const t = useTexts().common
  return (field: Field, value: Field["effective"]): string => {
    if (typeof value === "boolean") return value ? t.yes : t.no
    if (typeof value === "number") return isSize(field) ? bytes(value) : number(value)
    return textOf(value).replaceAll("\n", ", ") || t.none
  }
}

/** A setting's name for people. */
export const useSettingName = () => {
  const t = useTexts().settings
  return ({ path }: Field): string => t.names(path) ?? plainName(path)
}

/** A description, with its code in place of backticks. */
export const described = (text: string) =>
  text.split("`").map((part, index) => index % 2 === 1 ? <code key={index}>{part}</code> : part)

export const FieldView = ({ changed, fault, field, onText, text }: {
  readonly field: Field
  readonly text: string
  readonly changed: boolean
  readonly fault: string | undefined
  readonly onText: (text: string) => void
}) => {
  const { settings: t } = useTexts()
  const words = useWords()
  const name = useSettingName()(field)
  const id = `setting-${field.path}`
  const isBoolean = field.type === "boolean"
  const { maximum, minimum } = field
  const own = {
    number: t.notANumber,
    range: t.outOfRange(number(minimum ?? 0), number(maximum ?? Number.MAX_SAFE_INTEGER)),
    none: undefined
  }[faultOf(field, text) ?? "none"]
  const refusal = fault ?? own
  const shared = {
    id,
    value: text,
    "aria-invalid": refusal !== undefined,
    "aria-describedby": `${id}-about`
  } as const
  const written = {
    ...shared,
    spellcheck: false,
    onInput: (event: { readonly currentTarget: { readonly value: string } }) => onText(event.currentTarget.value)
  }
  const effective = words(field, field.effective)
  // An input without a value shows the value in effect itself; a list has no room for it.
  const differs = field.configured === null
    ? field.type === "map"
    : JSON.stringify(field.configured) !== JSON.stringify(field.effective)
  const size = isSize(field) && own === undefined && text.trim() !== "" ? bytes(Number(text)) : undefined
  return (
    <div class={`setting ${changed ? "changed" : ""}`}>
      <label for={id}>
        {name}
        {changed && <span class="hint">{` ${t.changed}`}</span>}
      </label>
      {isBoolean || field.type === "choice"
        ? (
          <select {...shared} onChange={(event) => onText(event.currentTarget.value)}>
            <option value="">{t.byDefault(words(field, field.default ?? field.effective))}</option>
            {(isBoolean ? ["true", "false"] : field.choices ?? []).map((choice) => (
              <option key={choice} value={choice}>{isBoolean ? words(field, choice === "true") : choice}</option>
            ))}
          </select>
        )
        : field.type === "map"
        ? <textarea {...written} rows={3} class="code" placeholder={t.mapPlaceholder} />
        : (
          <input
            {...written}
            type="text"
            inputMode={field.type === "integer" || field.type === "number" ? "decimal" : "text"}
            autocomplete="off"
            placeholder={t.byDefault(field.default === null ? effective : textOf(field.default))}
          />
        )}
      <div class="hint" id={`${id}-about`}>
        {refusal !== undefined && <span class="refused">{refusal}{" "}</span>}
        {field.description !== "" && <p>{described(field.description)}</p>}
        <p>
          {size !== undefined && `${size} · `}
          {differs && `${t.effective(effective)} · `}
          {minimum !== null && maximum !== null && `${t.range(number(minimum), number(maximum))} · `}
          <code>{field.path}</code>
        </p>
      </div>
    </div>
  )
}
