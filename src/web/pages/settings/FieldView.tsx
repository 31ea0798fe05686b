/**
 * A setting in the form: an input for the configured value, and the effective value beside it.
 */
import { useTexts } from "../../state/preferences.ts"
import { type Field, textOf } from "./fields.ts"

export const FieldView = ({ changed, fault, field, onText, text }: {
  readonly field: Field
  readonly text: string
  readonly changed: boolean
  readonly fault: string | undefined
  readonly onText: (text: string) => void
}) => {
  const { common, settings: t } = useTexts()
  const id = `setting-${field.path}`
  const isBoolean = field.type === "boolean"
  const shared = {
    id,
    value: text,
    "aria-invalid": fault !== undefined,
    "aria-describedby": `${id}-about`
  } as const
  const written = {
    ...shared,
    spellcheck: false,
    onInput: (event: { readonly currentTarget: { readonly value: string } }) => onText(event.currentTarget.value)
  }
  const word = (value: boolean) => value ? common.yes : common.no
  const effective = typeof field.effective === "boolean"
    ? word(field.effective)
    : textOf(field.effective).replaceAll("\n", ", ") || common.none
  return (
    <div class={`setting ${changed ? "changed" : ""}`}>
      <label for={id}>
        <code>{field.path}</code>
        {changed && <span class="hint">{` ${t.changed}`}</span>}
      </label>
      {isBoolean || field.type === "choice"
        ? (
          <select {...shared} onChange={(event) => onText(event.currentTarget.value)}>
            <option value="">{t.notSet}</option>
            {(isBoolean ? ["true", "false"] : field.choices ?? []).map((choice) => (
              <option key={choice} value={choice}>{isBoolean ? word(choice === "true") : choice}</option>
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
            placeholder={field.default === null ? t.notSet : textOf(field.default)}
          />
        )}
      <p class="hint" id={`${id}-about`}>
        {fault !== undefined && <span class="refused">{fault}{" "}</span>}
        <span>{t.effective(effective)}</span>
        {field.description !== "" && <span>{` · ${field.description}`}</span>}
        {field.minimum !== null && field.maximum !== null && (
          <span>{` · ${t.range(String(field.minimum), String(field.maximum))}`}</span>
        )}
      </p>
    </div>
  )
}
