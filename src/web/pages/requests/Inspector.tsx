/**
 * The inspector: one request with both of its sides, as they went over the wire. Updated while the request runs.
 */
import type { ComponentChildren } from "preact"
import { useMemo, useState } from "preact/hooks"
import { Heading } from "../../parts/Heading.tsx"
import { LoadFailure, Loading } from "../../parts/Loaded.tsx"
import type { RequestRecord } from "../../state/requests.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { Bill } from "./Bill.tsx"
import { Bodies } from "./Bodies.tsx"
import { CompareWith } from "./CompareWith.tsx"
import { Conversation } from "./Conversation.tsx"
import { Frames, type Wanted } from "./Frames.tsx"
import { PromptCache } from "./PromptCache.tsx"
import { readSides } from "./sides.ts"
import { Summary } from "./Summary.tsx"
import { TimeLine } from "./TimeLine.tsx"
import { copyAsCurl, openRecord } from "./use.ts"
import { useRecord } from "./useRecord.ts"
import { Verdict } from "./Verdict.tsx"

interface Shown {
  readonly record: RequestRecord
}

/** The time line, the conversation, and the frames, to which the time line leads. */
const Course = ({ record }: Shown) => {
  const { reply, style, upstream } = record
  const [wanted, setWanted] = useState<Wanted>()
  const sides = useMemo(() => readSides({ reply, style, upstream }), [reply, style, upstream])
  return (
    <>
      <TimeLine
        record={record}
        sides={sides}
        now={record.outcome === "open" ? Math.max(0, Date.now() - record.started_at) : 0}
        onTime={(at) => setWanted((last) => ({ at, count: (last?.count ?? 0) + 1 }))}
      />
      <Conversation record={record} />
      <Frames record={record} sides={sides} wanted={wanted} />
    </>
  )
}

/** The heading: of the page, or of the drawer, which leaves the window's title and the focus to the page. */
const Head = ({ children, id, inDrawer, name }: {
  readonly id: string
  readonly name: string
  readonly inDrawer: boolean
  readonly children?: ComponentChildren
}) =>
  inDrawer
    ? (
      <div class="heading">
        <h2>
          <a href={linkTo("requests", id)}>{name}</a>
        </h2>
        {children !== undefined && <div class="actions">{children}</div>}
      </div>
    )
    : <Heading name={name}>{children}</Heading>

/** One request. `inDrawer`: beside the list, which keeps its heading and the focus; the title leads to the page. */
export const RequestView = ({ id, inDrawer = false }: { readonly id: string; readonly inDrawer?: boolean }) => {
  const { compare, inspector: t, requests } = useTexts()
  const [choosing, setChoosing] = useState(false)
  const { failure, gone, record, retry } = useRecord(id)
  if (record === undefined) {
    return (
      <>
        <Head id={id} inDrawer={inDrawer} name={t.title(id)} />
        {gone
          ? <p class="notice">{t.gone}</p>
          : failure === undefined
          ? <Loading />
          : <LoadFailure text={failure} onRetry={retry} />}
        {!inDrawer && (
          <p>
            <a href={linkTo("requests")}>{t.back}</a>
          </p>
        )}
      </>
    )
  }
  return (
    <>
      <Head id={record.id} inDrawer={inDrawer} name={t.title(record.request_id)}>
        {!inDrawer && (
          <>
            <button type="button" disabled={!record.bodies_kept} onClick={() => void copyAsCurl(record)}>
              {requests.copyCurl}
            </button>
            <button type="button" onClick={() => setChoosing(true)}>{compare.choose}</button>
          </>
        )}
        <button type="button" disabled={record.conversation === null} onClick={() => openRecord(record)}>
          {t.openInPlayground}
        </button>
      </Head>
      {choosing && <CompareWith record={record} onClose={() => setChoosing(false)} />}
      {failure !== undefined && <LoadFailure text={failure} onRetry={retry} />}
      <Verdict record={record} />
      {!record.bodies_kept && <p class="notice">{t.bodiesGone}</p>}
      <Summary record={record} />
      <Bill record={record} />
      <PromptCache record={record} />
      <Course record={record} />
      <Bodies record={record} />
    </>
  )
}

export { RequestView as Inspector }
