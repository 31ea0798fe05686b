/**
 * Upstreams: what they do now, and changing, testing, adding and deleting them.
 */
import { useState } from "preact/hooks"
import { useWork } from "../../parts/Form.tsx"
import { elapsed, number } from "../../parts/format.ts"
import { Heading } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { numbers, RowButton, Table } from "../../parts/Table.tsx"
import { UpstreamBadge } from "../../parts/UpstreamBadge.tsx"
import { act, report } from "../../state/actions.ts"
import { defaultUpstream } from "../../state/names.ts"
import { useTexts } from "../../state/preferences.ts"
import { linkTo } from "../../state/route.ts"
import { type UpstreamItem, upstreamsAtom, useCurrentUpstreams } from "../../state/upstreams.ts"
import { DurabilityNotice } from "../configuration.tsx"
import { DeleteUpstream } from "./DeleteUpstream.tsx"
import { changedBy, EditUpstream } from "./EditUpstream.tsx"

const Accounts = ({ item: { accounts, name } }: { readonly item: UpstreamItem }) => {
  const { states, upstreams: t } = useTexts()
  const others = (["cooling", "out", "disabled"] as const).filter((state) => accounts[state] > 0)
  return (
    <>
      <a href={linkTo("accounts", undefined, { upstream: name })} aria-label={t.accountsOf(name, accounts.ready)}>
        {t.ready(accounts.ready)}
      </a>
      {others.map((state) => <p key={state} class="hint">{t.inState(accounts[state], states[state])}</p>)}
    </>
  )
}

const Row = ({ item, onDelete, onEdit }: {
  readonly item: UpstreamItem
  readonly onEdit: () => void
  readonly onDelete: () => void
}) => {
  const { common, upstreams: t } = useTexts()
  const { base_url, driver, enabled, in_use, last_5m, max_inflight, models, name, proxy, waiting } = item
  const [busy, toggle] = useWork(() =>
    act(
      (client) => client["admin-upstreams"].change({ params: { name }, headers: {}, payload: { enabled: !enabled } }),
      {
        done: () => enabled ? t.disabled(name) : t.enabled(name),
        subjects: changedBy
      }
    )
  )
  const [testing, test] = useWork(async () => {
    const reply = await act((client) => client["admin-upstreams"].testChanges({ params: { name }, payload: {} }), {})
    if (reply === undefined) return
    const { message, response_time, success } = reply
    report(success ? t.testPassed(name, elapsed(response_time)) : t.testFailed(name, message), !success)
  })
  return (
    <tr>
      <th scope="row" class="text name">
        {name}
        {base_url !== "" && <p class="hint">{base_url}</p>}
        <p class="hint" title={models.join(", ")}>
          {`${t.drivers(driver)} · ${t.modelCount(models.length)}`}
        </p>
        {proxy !== null && <p class="hint">{t.through(proxy)}</p>}
      </th>
      <td>
        <UpstreamBadge item={item} />
      </td>
      <td class="number">
        {common.of(number(in_use), number(max_inflight))}
        {waiting > 0 && <p class="hint">{t.waiting(number(waiting))}</p>}
      </td>
      <td class="nowrap">
        <Accounts item={item} />
      </td>
      <td class="number">
        {last_5m.requests === 0 ? "–" : (
          <>
            <span class={last_5m.errors > 0 ? "bad" : ""}>{number(last_5m.errors)}</span>
            <p class="hint">{t.ofTries(number(last_5m.requests))}</p>
          </>
        )}
      </td>
      <td class="number">
        {last_5m.p50_ms === null ? "–" : elapsed(last_5m.p50_ms)}
        {last_5m.p95_ms !== null && <p class="hint">{t.p95(elapsed(last_5m.p95_ms))}</p>}
      </td>
      <td class="tools">
        <RowButton
          text={enabled ? t.disable : t.enable}
          of={name}
          disabled={busy}
          onClick={toggle}
        />
        <RowButton text={t.test} of={name} disabled={testing} onClick={test} />
        <RowButton text={t.edit} of={name} onClick={onEdit} />
        <RowButton danger text={t.delete} of={name} disabled={name === defaultUpstream} onClick={onDelete} />
      </td>
    </tr>
  )
}

type Open =
  | { readonly name: "add" }
  | { readonly name: "edit" | "delete"; readonly item: UpstreamItem }

export const Upstreams = () => {
  const { common, upstreams: t } = useTexts()
  const [open, setOpen] = useState<Open>()
  useCurrentUpstreams()
  const close = () => setOpen(undefined)
  return (
    <>
      <Heading name={common.pages.upstreams}>
        <button type="button" class="primary" onClick={() => setOpen({ name: "add" })}>{t.add}</button>
      </Heading>
      <DurabilityNotice />
      <Loaded atom={upstreamsAtom}>
        {({ upstreams }) => (
          <>
            <Table
              name={common.pages.upstreams}
              columns={[
                t.upstream,
                t.state,
                ...numbers(t.slots),
                t.accounts,
                ...numbers(t.errors, t.speed),
                { name: t.actions, hidden: true }
              ]}
              rows={upstreams.length}
              empty={t.empty}
            >
              {upstreams.map((item) => (
                <Row
                  key={item.name}
                  item={item}
                  onEdit={() => setOpen({ name: "edit", item })}
                  onDelete={() => setOpen({ name: "delete", item })}
                />
              ))}
            </Table>
            <p class="hint">{t.figuresHint}</p>
          </>
        )}
      </Loaded>
      {open?.name === "add" && <EditUpstream onClose={close} />}
      {open?.name === "edit" && <EditUpstream item={open.item} onClose={close} />}
      {open?.name === "delete" && <DeleteUpstream item={open.item} onClose={close} />}
    </>
  )
}
