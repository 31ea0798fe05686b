/**
 * Routes: the models that callers ask for, their targets in order, and which of them would be taken now.
 */
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { choiceName, useFields } from "../../forms/Entry.tsx"
import type { FormField } from "../../forms/fields.ts"
import { ChangeButton } from "../../parts/configuration.tsx"
import { DeleteDialog } from "../../parts/Dialog.tsx"
import { Search } from "../../parts/Form.tsx"
import { number, percent } from "../../parts/format.ts"
import { Heading, Section } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { RowMenu } from "../../parts/Menu.tsx"
import { type Column, Meter, Pager, Row, Table } from "../../parts/Table.tsx"
import { report } from "../../state/actions.ts"
import { useReread } from "../../state/live.ts"
import { useValue } from "../../state/registry.ts"
import { choose, useQuery } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import {
  type Route,
  type Routes as AllRoutes,
  routesAtom,
  type UpstreamItem,
  upstreamsAtom,
  useCurrentUpstreams
} from "../../state/upstreams.ts"
import { hourAtom } from "../overview/reads.ts"
import { answersOf, impliedRoutes, plainRoute, routeNow, targetText } from "./choice.ts"
import { EditRoute, saveRoute } from "./EditRoute.tsx"
import { Rehearse } from "./Rehearse.tsx"
import { TargetState, Verdict } from "./TargetState.tsx"

const pageSize = 50
const unknown: ReadonlyArray<FormField> = []

/** The share of a target in the requests of the last hour. */
const Share = ({ all, count }: { readonly count: number; readonly all: number }) => {
  const t = useTexts().routes
  return <Meter used={count} limit={all} text={t.shareOfHour(percent(count, all), number(count))} isShare />
}

const RouteRow = ({ children, name, route, upstreams }: {
  readonly name: string
  readonly route: Route
  readonly upstreams: ReadonlyArray<UpstreamItem>
  /** What can be done with it. */
  readonly children: ComponentChildren
}) => {
  const t = useTexts().routes
  const now = routeNow(name, route, upstreams)
  const { all, counts } = answersOf(name, now.targets.map(({ text }) => text), useValue(hourAtom)?.answered ?? [])
  const nameIn = (path: string, choice: unknown) => choiceName(t.fields, path, choice)
  const options = [
    ...(route.spread !== "order" ? [t.spreadOf(nameIn("spread", route.spread))] : []),
    ...(route.wait > 0 ? [t.waits(number(route.wait))] : []),
    ...(route.sticky === plainRoute.sticky ? [] : [t.stickyOf(nameIn("sticky", route.sticky))]),
    ...(route.schemas === plainRoute.schemas ? [] : [t.schemasOf(nameIn("schemas", route.schemas))]),
    ...(route.also_on.length === 0
      ? []
      : [t.alsoOnOf(route.also_on.map((each) => nameIn("also_on", each)).join(", "))])
  ]
  return (
    <Row
      cells={[
        <>
          <code>{name}</code>
          {options.map((option) => <p key={option} class="hint">{option}</p>)}
        </>,
        <ol key="targets" class="listed">
          {now.targets.map((target, at) => (
            <li key={target.text}>
              <code>{target.text}</code>
              <TargetState target={target} isTaken={now.taken === at} />
              {all > 0 && <Share count={counts[at] ?? 0} all={all} />}
            </li>
          ))}
        </ol>,
        <Verdict key="now" now={now} wait={route.wait} />,
        children
      ]}
    />
  )
}

/** The columns of both tables; `first` names the first one. */
const columnsOf = (
  first: string,
  t: { readonly targets: string; readonly now: string; readonly actions: string }
): ReadonlyArray<Column> => [
  { name: first, rank: 1, width: "26%", class: "text" },
  { name: t.targets, rank: 2 },
  { name: t.now, rank: 1, width: "26%", class: "text" },
  { name: t.actions, hidden: true, width: "3.2rem", class: "tools" }
]

const RouteTable = ({ onDelete, onEdit, onRehearse, routes, upstreams }: {
  readonly routes: AllRoutes
  readonly upstreams: ReadonlyArray<UpstreamItem>
  readonly onEdit: (name: string, route: Route) => void
  readonly onRehearse: (name: string, route: Route) => void
  readonly onDelete: (name: string, route: Route) => void
}) => {
  const { common, routes: t } = useTexts()
  const { page: asked = "1", q = "" } = useQuery()
  const page = Math.max(1, Math.trunc(Number(asked)) || 1)
  const search = q.toLowerCase()
  const all = Object.entries(routes)
  const found = all.filter(([name, { targets }]) =>
    [name, ...targets.map(targetText)].some((text) => text.toLowerCase().includes(search))
  )
  const pages = Math.max(1, Math.ceil(found.length / pageSize))
  const turn = (next: number) => choose({ page: next === 1 ? "" : String(next) })
  return (
    <>
      {(all.length > 10 || q !== "") && (
        <div class="row">
          <Search label={t.search} value={q} onSearch={(text) => choose({ q: text, page: "" })} />
        </div>
      )}
      <Table
        name={common.pages.routes}
        columns={columnsOf(t.route, t)}
        rows={found.length}
        empty={all.length === 0 ? t.empty : t.noneFound}
      >
        {found.slice((page - 1) * pageSize, page * pageSize).map(([name, route]) => (
          <RouteRow key={name} name={name} route={route} upstreams={upstreams}>
            <RowMenu
              of={name}
              items={[
                {
                  id: "edit",
                  text: t.edit,
                  onClick: () =>
                    onEdit(name, route)
                },
                {
                  id: "rehearse",
                  text: t.rehearse,
                  onClick: () =>
                    onRehearse(name, route)
                },
                {
                  id: "delete",
                  text: t.delete,
                  danger: true,
                  apart: true,
                  onClick: () =>
                    onDelete(name, route)
                }
              ]}
            />
          </RouteRow>
        ))}
      </Table>
      {pages > 1 && <Pager page={page} shown={page} pages={pages} total={t.total(found.length)} onPage={turn} />}
    </>
  )
}

const impliedAtMost = 50

/** The models that several upstreams list, and which of them would be taken now. */
const Implied = ({ onAdd, onRehearse, routes, upstreams }: {
  readonly routes: AllRoutes
  readonly upstreams: ReadonlyArray<UpstreamItem>
  readonly onAdd: (route: Route) => void
  readonly onRehearse: (name: string, route: Route) => void
}) => {
  const t = useTexts().routes
  const implied = impliedRoutes(upstreams, routes)
  if (implied.length === 0) return null
  return (
    <Section name={t.implied}>
      <Table
        name={t.implied}
        columns={columnsOf(t.model, t)}
        rows={implied.length}
        empty=""
      >
        {implied.slice(0, impliedAtMost).map(([name, route]) => (
          <RouteRow key={name} name={name} route={route} upstreams={upstreams}>
            <RowMenu
              of={name}
              items={[
                {
                  id: "add",
                  text: t.add,
                  onClick: () =>
                    onAdd(route)
                },
                {
                  id: "rehearse",
                  text: t.rehearse,
                  onClick: () =>
                    onRehearse(name, route)
                }
              ]}
            />
          </RouteRow>
        ))}
      </Table>
      {implied.length > impliedAtMost && <p class="hint">{t.moreModels(implied.length - impliedAtMost)}</p>}
    </Section>
  )
}

type Open =
  | { readonly name: "add"; readonly route: Route }
  | { readonly name: "edit" | "delete" | "rehearse"; readonly of: string; readonly route: Route }

export const Routes = () => {
  const { common, routes: t } = useTexts()
  const [open, setOpen] = useState<Open>()
  useCurrentUpstreams()
  useReread(hourAtom)
  const fields = useFields("routes")
  const close = () => setOpen(undefined)
  const remove = async (name: string, route: Route) => {
    const refused = await saveRoute(fields ?? unknown, name, route, undefined, t)
    report(refused ?? t.deleted(name), refused !== undefined)
  }
  return (
    <>
      <Heading name={common.pages.routes}>
        <ChangeButton class="primary" onClick={() => setOpen({ name: "add", route: plainRoute })}>{t.add}</ChangeButton>
      </Heading>
      <p class="lead">{t.lead}</p>
      <Loaded atom={upstreamsAtom}>
        {({ upstreams }) => (
          <>
            <Loaded atom={routesAtom}>
              {({ routes }) => (
                <div class="stack">
                  <RouteTable
                    routes={routes}
                    upstreams={upstreams}
                    onEdit={(of, route) => setOpen({ name: "edit", of, route })}
                    onRehearse={(of, route) => setOpen({ name: "rehearse", of, route })}
                    onDelete={(of, route) => setOpen({ name: "delete", of, route })}
                  />
                  <Implied
                    routes={routes}
                    upstreams={upstreams}
                    onRehearse={(of, route) => setOpen({ name: "rehearse", of, route })}
                    onAdd={(route) => setOpen({ name: "add", route })}
                  />
                </div>
              )}
            </Loaded>
            {open !== undefined && (open.name === "add" || open.name === "edit") && (
              <EditRoute
                {...open.name === "edit" ? { name: open.of } : {}}
                route={open.route}
                upstreams={upstreams}
                onClose={close}
              />
            )}
          </>
        )}
      </Loaded>
      {open?.name === "rehearse" && (
        <Rehearse name={open.of} targets={open.route.targets.map(targetText)} onClose={close} />
      )}
      {open?.name === "delete" && (
        <DeleteDialog
          name={open.of}
          onClose={close}
          onDelete={() => remove(open.of, open.route)}
        >
          {t.deleteAsk(open.route.targets.map(targetText).join(", "))}
        </DeleteDialog>
      )}
    </>
  )
}
