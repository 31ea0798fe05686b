/**
 * Pieces of the inspector: facts, headers, bodies, frames.
 */
import type { ComponentChildren } from "preact"
import { useTexts } from "../../state/preferences.ts"
import type { RecordedFrame } from "../../state/requests.ts"

export const Facts = ({ facts }: { readonly facts: ReadonlyArray<readonly [string, ComponentChildren]> }) => (
  <dl class="facts">
    {facts.map(([name, value]) => (
      <>
        <dt key={`${name} name`}>{name}</dt>
        <dd key={name} class="text">{value}</dd>
      </>
    ))}
  </dl>
)

export const Headers = ({ headers, name }: {
  readonly name: string
  readonly headers: Readonly<Record<string, string>>
}) => (
  <details>
    <summary>{name}</summary>
    <pre>{Object.entries(headers).map(([field, value]) => `${field}: ${value}`).join("\n")}</pre>
  </details>
)

/** Longer texts are shown in part: the document stays quick. */
const shownCharacters = 100_000

/** JSON with its structure shown, else the text as it is. */
const readable = (text: string): string => {
  if (text.length > shownCharacters) return text
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

export const Body = ({ name, text }: { readonly name: string; readonly text: string }) => {
  const t = useTexts().inspector
  return (
    <div class="stack">
      <p class="label">{name}</p>
      {text === "" ? <p class="hint">{t.noBody}</p> : (
        <div class="body" tabIndex={0} role="group" aria-label={name}>
          <pre>{readable(text).slice(0, shownCharacters)}</pre>
        </div>
      )}
      {text.length > shownCharacters ? <p class="hint">{t.shownInPart(text.length)}</p> : null}
    </div>
  )
}

/** Frames are read in the time line; here stands how many there are, and a whole body as it was. */
export const Frames = ({ frames, name, truncated }: {
  readonly name: string
  readonly frames: ReadonlyArray<RecordedFrame>
  readonly truncated: boolean
}) => {
  const t = useTexts().inspector
  const only = frames.length === 1 ? frames[0] : undefined
  return (
    <>
      {only === undefined
        ? (
          <p>
            <span class="label">{name}</span>: {t.frameCount(frames.length)}
          </p>
        )
        : <Body name={name} text={only.data} />}
      {truncated ? <p class="hint">{t.truncated}</p> : null}
    </>
  )
}
