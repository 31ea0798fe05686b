/**
 * The request and the reply of the client, and the rounds with the upstream: headers and bodies as they went over the wire, folded.
 */
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { CopyButton } from "../../parts/Copy.tsx"
import { bytes } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { Breaking } from "../../parts/Name.tsx"
import type { RecordedFrame, RequestRecord } from "../../state/requests.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { readable, shownCharacters } from "./readable.ts"

interface Shown {
  readonly record: RequestRecord
}

/** Content that is made when it is unfolded. */
const Folded = ({ children, name, size }: {
  readonly name: string
  readonly size: string
  readonly children: () => ComponentChildren
}) => {
  const [open, setOpen] = useState(false)
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {name} <span class="hint">{size}</span>
      </summary>
      {open && children()}
    </details>
  )
}

const Body = ({ name, text, truncated }: {
  readonly name: string
  readonly text: string
  readonly truncated: boolean
}) => {
  const t = useTexts().inspector
  if (text === "") return <p class="hint">{`${name}: ${t.noBody}`}</p>
  return (
    <>
      <Folded name={name} size={bytes(new Blob([text]).size)}>
        {() => (
          <>
            <div class="card body" tabIndex={0} role="group" aria-label={name}>
              <pre>{readable(text).slice(0, shownCharacters)}</pre>
            </div>
            <div class="actions between">
              <span class="hint">{text.length > shownCharacters && t.shownInPart(text.length)}</span>
              <CopyButton name={name} text={text} />
            </div>
          </>
        )}
      </Folded>
      {truncated && <p class="hint">{t.truncated}</p>}
    </>
  )
}

/** A single frame as a body; otherwise the number of frames, which are shown above. */
const Frames = ({ frames, name, truncated }: {
  readonly frames: ReadonlyArray<RecordedFrame>
  readonly name: string
  readonly truncated: boolean
}) => {
  const t = useTexts().inspector
  if (frames.length === 1) return <Body name={name} text={frames[0]!.data} truncated={truncated} />
  return (
    <p class="hint">
      {name}: {t.framesAbove(frames.length)}
      {truncated && ` ${t.truncated}`}
    </p>
  )
}

const Headers = ({ headers, name }: {
  readonly name: string
  readonly headers: Readonly<Record<string, string>>
}) => {
  const lines = Object.entries(headers).map(([field, value]) => `${field}: ${value}`)
  return <Folded name={name} size={String(lines.length)}>{() => <pre>{lines.join("\n")}</pre>}</Folded>
}

const Client = ({ record: { bodies_kept, reply, request } }: Shown) => {
  const t = useTexts().inspector
  return (
    <div class="halves fitted">
      <Section name={t.clientRequest}>
        <div class="card">
          <p class="text">
            <code>{request.method} {request.path}</code>
          </p>
          <Headers headers={request.headers} name={t.requestHeaders} />
          {bodies_kept && <Body name={t.body} text={request.body} truncated={request.truncated} />}
        </div>
      </Section>
      <Section name={t.clientReply}>
        <div class="card">
          {reply === null ? <p class="hint">{bodies_kept ? t.noReply : t.notKept}</p> : (
            <>
              <p>{t.statusIs(reply.status)}</p>
              <Headers headers={reply.headers} name={t.replyHeaders} />
              <Frames name={t.framesSent} frames={reply.frames} truncated={reply.truncated} />
            </>
          )}
        </div>
      </Section>
    </div>
  )
}

const Rounds = ({ record: { bodies_kept, upstream } }: Shown) => {
  const t = useTexts().inspector
  return (
    <Section name={t.rounds}>
      {upstream.length === 0 && <p class="hint">{bodies_kept ? t.noRounds : t.notKept}</p>}
      {upstream.map((round, index) => (
        <div key={index} class="card">
          <h3>{t.round(index + 1, round.label)}</h3>
          <p class="summary">
            <code>{round.url}</code>
            {round.account !== "" && (
              <a href={linkTo("accounts", round.account)}>
                <Breaking text={round.account} />
              </a>
            )}
            <span>{t.tryIs(round.attempt)}</span>
            <span>{round.status === 0 ? t.noStatus : t.statusIs(round.status)}</span>
          </p>
          <Body name={t.sent} text={round.request_body} truncated={false} />
          <Frames name={t.received} frames={round.frames} truncated={round.truncated} />
        </div>
      ))}
    </Section>
  )
}

export const Bodies = ({ record }: Shown) => (
  <>
    <Client record={record} />
    <Rounds record={record} />
  </>
)
