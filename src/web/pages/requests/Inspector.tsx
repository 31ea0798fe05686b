/**
 * One request: both sides of it, as they went over the wire. Fills while the request runs.
 */
import { useEffect, useState } from "preact/hooks"
import { dateTime, elapsed, number } from "../../parts/format.ts"
import { Heading } from "../../parts/Heading.tsx"
import { LoadFailure, Loading } from "../../parts/Loaded.tsx"
import { Table } from "../../parts/Table.tsx"
import { openTalk } from "../../playground/state.ts"
import { failureText } from "../../state/failure.ts"
import { onRequests, onReset } from "../../state/live.ts"
import { useTexts } from "../../state/preferences.ts"
import type { RequestRecord } from "../../state/requests.ts"
import { readRequest } from "../../state/requests.ts"
import { go, linkTo } from "../../state/route.ts"
import { Outcome } from "./Outcome.tsx"
import { Body, Facts, Frames, Headers } from "./parts.tsx"
import { TimeLine } from "./TimeLine.tsx"
import { asTalk } from "./toPlayground.ts"

/** The record, read anew when it changes, and once a second while it is open: frames that come are no event. */
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
    const ask = () => {
      if (reading) again = true
      else void read()
    }
    const stop = onRequests((items) => {
      if (items.some((item) => item.id === (known ?? id) || item.request_id === id)) ask()
    })
    const stopReset = onReset(ask)
    ask()
    return () => {
      ending.abort()
      clearTimeout(timer)
      stop()
      stopReset()
    }
  }, [id, tries])
  return { record, failure, gone, retry: () => setTries(tries + 1) }
}

const Conversation = ({ record }: { readonly record: RequestRecord }) => {
  const t = useTexts().inspector
  const turns = record.conversation
  return (
    <section role="region" aria-label={t.conversation}>
      <h2>{t.conversation}</h2>
      {turns === null ?
        <p class="hint">{t.notDecoded}</p> :
        (
          <div class="card log" tabIndex={0} role="group" aria-label={t.conversation}>
            {turns.slice(-100).map((turn, index) => (
              <div key={index} class={`turn ${turn.role}`}>
                <p class="who">{turn.role}{turn.call_id ? ` · ${turn.call_id}` : ""}</p>
                {turn.text.trim() === "" ? null : <p class="said">{turn.text.trim()}</p>}
                {turn.calls.map((call) => (
                  <p key={call.id} class="call">
                    <code>{call.name}({call.arguments})</code>
                  </p>
                ))}
              </div>
            ))}
          </div>
        )}
    </section>
  )
}

const Rounds = ({ record }: { readonly record: RequestRecord }) => {
  const texts = useTexts()
  const t = texts.inspector
  return (
    <section role="region" aria-label={t.rounds}>
      <h2>{t.rounds}</h2>
      {record.upstream.length === 0 ?
        <p class="hint">{t.noRounds}</p> :
        record.upstream.map((round, index) => (
          <div key={index} class="card">
            <h3>{t.round(index + 1, round.label)}</h3>
            <Facts
              facts={[
                [t.address, <code key="url">{round.url}</code>],
                [t.account, round.account === "" ? texts.common.none : round.account],
                [t.attempt, String(round.attempt)],
                [t.status, round.status === 0 ? t.noStatus : String(round.status)]
              ]}
            />
            <Body name={t.sent} text={round.request_body} />
            <Frames name={t.received} frames={round.frames} truncated={round.truncated} />
          </div>
        ))}
    </section>
  )
}

const ToolCalls = ({ record }: { readonly record: RequestRecord }) => {
  const t = useTexts().inspector
  return (
    <section role="region" aria-label={t.toolCalls}>
      <h2>{t.toolCalls}</h2>
      <Table
        name={t.toolCalls}
        columns={[{ name: t.time, number: true }, { name: t.tool }, { name: t.arguments }]}
        rows={record.tool_calls.length}
        empty={t.noCalls}
      >
        {record.tool_calls.slice(0, 100).map((call) => (
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
    </section>
  )
}

const Timing = ({ record }: { readonly record: RequestRecord }) => {
  const texts = useTexts()
  const t = texts.inspector
  const time = (value: number | null) => value === null ? "–" : elapsed(value)
  return (
    <section role="region" aria-label={t.timing}>
      <h2>{t.timing}</h2>
      <div class="card">
        <Facts
          facts={[
            [t.started, dateTime(record.started_at)],
            [t.queued, time(record.queued_ms)],
            [t.firstEvent, time(record.first_event_ms)],
            [t.duration, time(record.duration_ms)],
            [t.attempts, t.attemptsOf(record.attempts, record.failovers)],
            [
              t.tokens,
              record.usage === null ? "–" : t.tokensOf(
                number(record.usage.prompt_tokens),
                number(record.usage.completion_tokens),
                number(record.usage.reasoning_tokens)
              )
            ],
            [t.serverTiming, record.server_timing ?? "–"]
          ]}
        />
      </div>
    </section>
  )
}

export const Inspector = ({ id }: { readonly id: string }) => {
  const texts = useTexts()
  const t = texts.inspector
  const { failure, gone, record, retry } = useRecord(id)
  if (record === undefined) {
    return (
      <>
        <Heading name={t.title(id)} />
        {gone ? <p class="notice">{t.gone}</p> : failure === undefined
          ? <Loading />
          : <LoadFailure text={failure} onRetry={retry} />}
        <p>
          <a href={linkTo("requests")}>{t.back}</a>
        </p>
      </>
    )
  }
  const open = () => {
    const { form, turns } = asTalk(record)
    openTalk(form, turns)
    go("playground")
  }
  const { reply, request } = record
  return (
    <>
      <Heading name={t.title(record.request_id)}>
        <a class="button" href={linkTo("requests")}>{t.back}</a>
        <button type="button" disabled={record.conversation === null} onClick={open}>{t.openInPlayground}</button>
      </Heading>
      <p class="summary">
        <Outcome item={record} />
        <span>{record.status ?? ""}</span>
        <span>{texts.requests.styles(record.style)}</span>
        <span>{[...new Set([record.model, record.native_model])].filter((name) => name !== null).join(" → ")}</span>
        <span>{record.stream ? t.streamed : t.whole}</span>
        {record.finish === null ? null : <span>{t.finish(record.finish)}</span>}
        {record.error === null ? null : <span class="refused">{record.error}</span>}
      </p>
      {record.bodies_kept ? null : <p class="notice">{t.bodiesGone}</p>}
      <TimeLine record={record} />
      <Timing record={record} />
      <ToolCalls record={record} />
      <Conversation record={record} />
      <div class="halves">
        <section role="region" aria-label={t.clientRequest}>
          <h2>{t.clientRequest}</h2>
          <div class="card">
            <p class="text">
              <code>{request.method} {request.path}</code>
            </p>
            <Headers headers={request.headers} name={t.requestHeaders} />
            <Body name={t.body} text={request.body} />
            {request.truncated ? <p class="hint">{t.truncated}</p> : null}
          </div>
        </section>
        <section role="region" aria-label={t.clientReply}>
          <h2>{t.clientReply}</h2>
          <div class="card">
            {reply === null ? <p class="hint">{t.noReply}</p> : (
              <>
                <p>{t.statusIs(reply.status)}</p>
                <Headers headers={reply.headers} name={t.replyHeaders} />
                <Frames name={t.framesSent} frames={reply.frames} truncated={reply.truncated} />
              </>
            )}
          </div>
        </section>
      </div>
      <Rounds record={record} />
    </>
  )
}
