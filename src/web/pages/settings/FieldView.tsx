/**
 * A setting in the form: what is configured can be changed, what is in effect stands beside it.
 */
import { useTexts } from "../../state/preferences.ts"
import type { Field } from "./fields.ts"
import { textOf } from "./fields.ts"

const inputOf = (field: Field): "select" | "textarea" | "input" =>
  field.type === "boolean" || field.type === "choice" ? "select" : field.type === "map" ? "textarea" : "input"

export const FieldView = ({ changed, fault, field, onText, text }: {
  readonly field: Field
  readonly text: string
  readonly changed: boolean
  readonly fault: string | undefined
  readonly onText: (text: string) => void
}) => {
  const texts = useTexts()
  const t = texts.settings
  const id = `setting-${field.path}`
  const range = field.minimum !== null && field.maximum !== null
    ? t.range(String(field.minimum), String(field.maximum))
    : undefined
  const shared = {
    id,
    value: text,
    "aria-invalid": fault !== undefined,
    "aria-describedby": `${id}-about`
  } as const
  const choices = field.type === "boolean" ? ["true", "false"] : field.choices ?? []
  const tag = inputOf(field)
  return (
    <div class={`setting ${changed ? "changed" : ""}`}>
      <label for={id}>
        <code>{field.path}</code>
        {changed ? <span class="hint">{` ${t.changed}`}</span> : null}
      </label>
      {tag === "select"
        ? (
          <select {...shared} onChange={(event) => onText(event.currentTarget.value)}>
            <option value="">{t.notSet}</option>
            {choices.map((choice) => (
              <option key={choice} value={choice}>
                {field.type === "boolean" ? (choice === "true" ? texts.common.yes : texts.common.no) : choice}
              </option>
            ))}
          </select>
        )
        : tag === "textarea"
        ? (
          <textarea
            {...shared}
            rows={3}
            class="code"
            spellcheck={false}
            placeholder={t.mapPlaceholder}
            onInput={(event) => onText(event.currentTarget.value)}
          />
        )
        : (
          <input
            {...shared}
            type="text"
            inputMode={field.type === "integer" || field.type === "number" ? "decimal" : "text"}
            spellcheck={false}
            autocomplete="off"
            placeholder={field.default === null ? t.notSet : textOf(field.default)}
            onInput={(event) => onText(event.currentTarget.value)}
          />
        )}
      <p class="hint" id={`${id}-about`}>
        {fault === undefined ? null : <span class="refused">{fault}{" "}</span>}
        <span>{t.effective(effectiveText(field, texts.common.yes, texts.common.no) || texts.common.none)}</span>
        {field.description === "" ? null : <span>{` · ${field.description}`}</span>}
        {range === undefined ? null : <span>{` · ${range}`}</span>}
      </p>
    </div>
  )
}

const effectiveText = (field: Field, yes: string, no: string): string =>
  typeof field.effective === "boolean" ? (field.effective ? yes : no) : textOf(field.effective).replaceAll("\n", ", ")
