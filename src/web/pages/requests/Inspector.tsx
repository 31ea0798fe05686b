/**
 * The inspector: one request with both of its sides, as they went over the wire. Updated while the request runs.
 */
import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { Badge, RequestBadge } from "../../parts/Badge.tsx"
import { dateTime, elapsed, number } from "../../parts/format.ts"
import { Heading, Section } from "../../parts/Heading.tsx"
import { LoadFailure, Loading } from "../../parts/Loaded.tsx"
import { Facts, numbers, Table } from "../../parts/Table.tsx"
import { openConversation } from "../../playground/state.ts"
import { failureText } from "../../state/failure.ts"
import { parsed } from "../../state/json.ts"
import { onRequests, onReset } from "../../state/live.ts"
import { useTexts } from "../../state/preferences.ts"
import { readRequest, type RecordedFrame, type RequestRecord } from "../../state/requests.ts"
import { go, linkTo } from "../../state/route.ts"
import { TimeLine } from "./TimeLine.tsx"
import { asConversation } from "./toPlayground.ts"

/** The record. Reloaded on each event about it, and every second while it is open, because frames cause no events. */
const useRecord = (id: string) => {
  const [record, setRecord] = useState<RequestRecord>()
  const [failure, setFailure] = useState<string>()
  const [gone, setGone] = useState(false)
  const [tries, setTries] = useState(0)
  useEffect(() => {
    const ending = new AbortController()
    let reading = false
    let again = false
    let timer: ReturnType<typeof setTimeout> | undefined
    let known: string | undefined
    const read = async () => {
      reading = true
      again = false
      try {
        const next = await readRequest(id, ending.signal)
        setGone(next === undefined)
        if (next !== undefined) {
          known = next.id
          again ||= next.outcome === "open"
          setRecord(next)
          setFailure(undefined)
        }
      } catch (reason) {
        if (!ending.signal.aborted) setFailure(failureText(reason))
      }
      timer = setTimeout(() => {
        reading = false
        if (again) void read()
      }, 1_000)
    }
    const prompt = () => {
      if (reading) again = true
      else void read()
    }
    const stop = onRequests((items) => {
      if (items.some((item) => item.id === (known ?? id) || item.request_id === id)) prompt()
    })
    const stopReset = onReset(prompt)
    prompt()
    return () => {
      ending.abort()
      clearTimeout(timer)
      stop()
      stopReset()
    }
  }, [id, tries])
  return { record, failure, gone, retry: () => setTries(tries + 1) }
}

/** Longer texts are shown in part, so that the page stays fast. */
const shownCharacters = 100_000

/** JSON with indentation; other text unchanged. */
const readable = (text: string): string => {
  const value = text.length > shownCharacters ? undefined : parsed(text)
  return value === undefined ? text : JSON.stringify(value, null, 2)
}

const Body = ({ name, text }: { readonly name: string; readonly text: string }) => {
  const t = useTexts().inspector
  return (
    <div class="stack">
      <p class="label">{name}</p>
      {text === "" ? <p class="hint">{t.noBody}</p> : (
        <div class="body" tabIndex={0} role="group" aria-label={name}>
          <pre>{readable(text).slice(0, shownCharacters)}</pre>
        </div>
      )}
      {text.length > shownCharacters && <p class="hint">{t.shownInPart(text.length)}</p>}
    </div>
  )
}

/** A single frame as a body; otherwise the number of frames, which the timeline shows. */
const Frames = ({ frames, name, truncated }: {
  readonly frames: ReadonlyArray<RecordedFrame>
  readonly name: string
  readonly truncated: boolean
}) => {
  const t = useTexts().inspector
  return (
    <>
      {frames.length === 1 ? <Body name={name} text={frames[0]!.data} /> : (
        <p>
          <span class="label">{name}</span>: {t.frameCount(frames.length)}
        </p>
      )}
      {truncated && <p class="hint">{t.truncated}</p>}
    </>
  )
}

const Headers = ({ headers, name }: {
  readonly name: string
  readonly headers: Readonly<Record<string, string>>
}) => (
  <details>
    <summary>{name}</summary>
    <pre>{Object.entries(headers).map(([field, value]) => `${field}: ${value}`).join("\n")}</pre>
  </details>
)

interface Shown {
  readonly record: RequestRecord
}

const ignoredOf = ({ ignored, ignored_more }: RequestRecord): string =>
  [...ignored, ...(ignored_more === 0 ? [] : [`+${ignored_more}`])].join(", ") || "–"

const Timing = ({ record }: Shown) => {
  const t = useTexts().inspector
  const time = (value: number | null) => value === null ? "–" : elapsed(value)
  const tokens = ({ completion_tokens, prompt_tokens, reasoning_tokens }: NonNullable<RequestRecord["usage"]>) =>
    t.tokensOf(number(prompt_tokens), number(completion_tokens), number(reasoning_tokens))
  return (
    <Section name={t.timing}>
      <div class="card">
        <Facts
          facts={[
            [t.started, dateTime(record.started_at)],
            [t.queued, time(record.queued_ms)],
            [t.firstEvent, time(record.first_event_ms)],
            [t.duration, time(record.duration_ms)],
            [t.attempts, t.attemptsOf(record.attempts, record.failovers)],
            [t.tokens, record.usage === null ? "–" : tokens(record.usage)],
            [t.serverTiming, record.server_timing ?? "–"],
            [t.ignored, ignoredOf(record)]
          ]}
        />
      </div>
    </Section>
  )
}

/** The tries in order. */
const Tries = ({ record: { outcome, tries } }: Shown) => {
  const t = useTexts().inspector
  return (
    <Section name={t.tries}>
      <Table
        name={t.tries}
        columns={[...numbers(t.place), t.target, t.account, t.result, ...numbers(t.began, t.took)]}
        rows={tries.length}
        empty={t.noTries}
      >
        {tries.map(({ account, began_ms, cause, model, status, took_ms, upstream }, index) => (
          <tr key={index}>
            <td class="number">{index + 1}</td>
            <th scope="row" class="text">
              <code>{`${upstream}/${model}`}</code>
            </th>
            <td class="text">{account || "–"}</td>
            <td>
              {cause !== null
                ? <Badge sign="✕" tone="bad" text={t.causes(cause)} />
                : took_ms !== null
                ? <Badge sign="✓" tone="good" text={t.answered} />
                : <Badge sign="…" tone="" text={outcome === "open" ? t.trying : t.given} />}
              {status !== null && <span class="hint">{` ${status}`}</span>}
            </td>
            <td class="number">{elapsed(began_ms)}</td>
            <td class="number">{took_ms === null ? "–" : elapsed(took_ms)}</td>
          </tr>
        ))}
      </Table>
    </Section>
  )
}

const ToolCalls = ({ record: { tool_calls } }: Shown) => {
  const t = useTexts().inspector
  return (
    <Section name={t.toolCalls}>
      <Table
        name={t.toolCalls}
        columns={[...numbers(t.time), t.tool, t.arguments]}
        rows={tool_calls.length}
        empty={t.noCalls}
      >
        {tool_calls.slice(0, 100).map((call) => (
          <tr key={call.id}>
            <td class="number">{call.at_ms.toFixed(1)} ms</td>
            <th scope="row">
              <code>{call.name}</code>
            </th>
            <td>
              <pre>{call.arguments}</pre>
            </td>
          </tr>
        ))}
      </Table>
    </Section>
  )
}

const Conversation = ({ record: { conversation } }: Shown) => {
  const t = useTexts().inspector
  return (
    <Section name={t.conversation}>
      {conversation === null ?
        <p class="hint">{t.notDecoded}</p> :
        (
          <div class="card log" tabIndex={0} role="group" aria-label={t.conversation}>
            {conversation.slice(-100).map((turn, index) => (
              <div key={index} class={`turn ${turn.role}`}>
                <p class="who">{turn.role}{turn.call_id ? ` · ${turn.call_id}` : ""}</p>
                {turn.text.trim() !== "" && <p class="said">{turn.text.trim()}</p>}
                {turn.calls.map((call) => (
                  <p key={call.id} class="call">
                    <code>{call.name}({call.arguments})</code>
                  </p>
                ))}
              </div>
            ))}
          </div>
        )}
    </Section>
  )
}

const Side = ({ children, name }: { readonly name: string; readonly children: ComponentChildren }) => (
  <Section name={name}>
    <div class="card">{children}</div>
  </Section>
)

const Client = ({ record: { reply, request } }: Shown) => {
  const t = useTexts().inspector
  return (
    <div class="halves">
      <Side name={t.clientRequest}>
        <p class="text">
          <code>{request.method} {request.path}</code>
        </p>
        <Headers headers={request.headers} name={t.requestHeaders} />
        <Body name={t.body} text={request.body} />
        {request.truncated && <p class="hint">{t.truncated}</p>}
      </Side>
      <Side name={t.clientReply}>
        {reply === null ? <p class="hint">{t.noReply}</p> : (
          <>
            <p>{t.statusIs(reply.status)}</p>
            <Headers headers={reply.headers} name={t.replyHeaders} />
            <Frames name={t.framesSent} frames={reply.frames} truncated={reply.truncated} />
          </>
        )}
      </Side>
    </div>
  )
}

const Rounds = ({ record: { upstream } }: Shown) => {
  const { common, inspector: t } = useTexts()
  return (
    <Section name={t.rounds}>
      {upstream.length === 0 && <p class="hint">{t.noRounds}</p>}
      {upstream.map((round, index) => (
        <div key={index} class="card">
          <h3>{t.round(index + 1, round.label)}</h3>
          <Facts
            facts={[
              [t.address, <code key="url">{round.url}</code>],
              [t.account, round.account || common.none],
              [t.attempt, String(round.attempt)],
              [t.status, round.status === 0 ? t.noStatus : String(round.status)]
            ]}
          />
          <Body name={t.sent} text={round.request_body} />
          <Frames name={t.received} frames={round.frames} truncated={round.truncated} />
        </div>
      ))}
    </Section>
  )
}

export const Inspector = ({ id }: { readonly id: string }) => {
  const { inspector: t, requests } = useTexts()
  const { failure, gone, record, retry } = useRecord(id)
  if (record === undefined) {
    return (
      <>
        <Heading name={t.title(id)} />
        {gone
          ? <p class="notice">{t.gone}</p>
          : failure === undefined
          ? <Loading />
          : <LoadFailure text={failure} onRetry={retry} />}
        <p>
          <a href={linkTo("requests")}>{t.back}</a>
        </p>
      </>
    )
  }
  const open = () => {
    const { form, turns } = asConversation(record)
    openConversation(form, turns)
    go("playground")
  }
  return (
    <>
      <Heading name={t.title(record.request_id)}>
        <a class="button" href={linkTo("requests")}>{t.back}</a>
        <button type="button" disabled={record.conversation === null} onClick={open}>{t.openInPlayground}</button>
      </Heading>
      <p class="summary">
        <RequestBadge item={record} />
        <span>{record.status ?? ""}</span>
        <span>{requests.styles(record.style)}</span>
        <span>{[...new Set([record.model, record.native_model])].filter((name) => name !== null).join(" → ")}</span>
        <span>{record.stream ? t.streamed : t.whole}</span>
        {record.finish !== null && <span>{t.finish(record.finish)}</span>}
        {record.error !== null && <span class="refused">{record.error}</span>}
      </p>
      {!record.bodies_kept && <p class="notice">{t.bodiesGone}</p>}
      <Tries record={record} />
      <TimeLine record={record} />
      <Timing record={record} />
      <ToolCalls record={record} />
      <Conversation record={record} />
      <Client record={record} />
      <Rounds record={record} />
    </>
  )
}
