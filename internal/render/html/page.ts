// The script of a page. The page is complete without it: the script shows controls for what is in the page already. It requests nothing, and it sets text
// only as text. State that a reader may want to send is in the fragment of the address.

/** Line pairs: the class of the cell, then the text and the class of each line. */
type CellData = string[]
type Comparison = [size: number | null, shown: number, factor: CellData, difference: CellData]

interface MatrixData {
  /** The names of the rows and of the columns. */
  nouns: [string, string]
  targets: string[]
  rows: { id: string; suite: string; rest: boolean }[]
  values: CellData[][]
  bases: Comparison[][][]
}

interface Row {
  index: number
  element: HTMLTableRowElement
  cells: HTMLTableCellElement[]
  /** The choice that the cells show. */
  drawn: string
}

const all = <E extends Element>(root: ParentNode, selector: string): E[] => Array.from(root.querySelectorAll<E>(selector))

function fill(cell: HTMLElement, data: CellData): void {
  cell.className = data[0]
  const lines: HTMLElement[] = []
  for (let i = 1; i < data.length; i += 2) {
    const line = document.createElement(i === 1 ? "span" : "small")
    line.textContent = data[i]
    line.className = data[i + 1]
    lines.push(line)
  }
  cell.replaceChildren(...lines)
}

function matrix(root: HTMLElement): void {
  const data: MatrixData = JSON.parse(root.querySelector("script")!.textContent!)
  const controls = root.querySelector<HTMLElement>(".controls")!
  const table = root.querySelector("table")!
  const body = table.tBodies[0]
  const status = controls.querySelector<HTMLElement>("[role=status]")!
  const heads = all<HTMLElement>(table.tHead!, "th")
  const original = Array.from(body.rows)
  const rows: Row[] = original
    .filter((element) => element.dataset.row !== undefined)
    .map((element) => ({ index: Number(element.dataset.row), element, cells: all<HTMLTableCellElement>(element, "td"), drawn: "0" }))
  const field = (name: string) => controls.querySelector<HTMLInputElement | HTMLSelectElement>(`[name=${name}]`)
  const boxes = (name: string) => all<HTMLInputElement>(controls, `[name=${name}]`)
  const value = (name: string) => field(name)?.value ?? ""
  const checked = (name: string) => (field(name) as HTMLInputElement | null)?.checked ?? false
  const bases = all<HTMLOptionElement>(controls, "[name=base] option").map((o) => o.value)
  const texts = ["base", "show", "order", "m"]
  let columns = data.targets.map(() => true)

  function order(list: Row[], base: Comparison[][]): Row[] {
    const by = value("order")
    const target = by.startsWith("on ") ? data.targets.indexOf(by.slice(3)) : -1
    const size = (row: Row) =>
      target >= 0
        ? (base[row.index][target][0] ?? -Infinity)
        : Math.max(-1, ...base[row.index].map(([size, shown], c) => (columns[c] && shown ? Math.abs(size ?? 0) : -1)))
    if (by === "name") return list.sort((a, b) => (data.rows[a.index].id < data.rows[b.index].id ? -1 : 1))
    if (by !== "") return list.map((row) => [size(row), row] as const).sort((a, b) => b[0] - a[0] || a[1].index - b[1].index).map(([, row]) => row)
    return list
  }

  function draw(): void {
    const choice = Math.max(0, bases.indexOf(value("base")))
    const base = data.bases[choice]
    const show = value("show")
    const words = value("m").toLowerCase().split(/\s+/)
    const suites = new Set(boxes("s").filter((box) => box.checked).map((box) => box.value))
    const hasSuites = boxes("s").length > 0
    columns = boxes("t").map((box) => box.checked)
    heads.forEach((head, c) => (head.hidden = !columns[c]))
    const key = show === "value" ? show : show + choice
    const visible = rows.filter((row) => {
      const { id, suite, rest } = data.rows[row.index]
      const found = words.every((word) => id.toLowerCase().includes(word))
      const has = (!hasSuites || suites.has(suite)) && found && (!rest || checked("all") || value("m") !== "")
      const isVisible = has && (!checked("shown") || base[row.index].some(([, shown], c) => columns[c] && shown))
      row.element.hidden = !isVisible
      return isVisible
    })
    for (const row of visible) {
      row.cells.forEach((cell, c) => (cell.hidden = !columns[c]))
      if (row.drawn === key) continue
      row.drawn = key
      row.cells.forEach((cell, c) => fill(cell, show === "value" ? data.values[row.index][c] : base[row.index][c][show === "difference" ? 3 : 2]))
    }
    const isOrdered = value("order") !== ""
    table.classList.toggle("ordered", isOrdered)
    const list = isOrdered ? order([...rows], base).map((row) => row.element) : original
    // A browser computes the layout of all rows anew if it inserts them, even in the same order.
    if (list.length !== body.rows.length || list.some((row, i) => row !== body.rows[i])) body.replaceChildren(...list)
    let group: HTMLTableRowElement | null = null
    for (const element of isOrdered ? [] : original) {
      if (element.dataset.row === undefined) {
        group = element
        group.hidden = true
      } else if (group && !element.hidden) group.hidden = false
    }
    status.textContent = `${visible.length} of ${rows.length} ${data.nouns[0]}, ${columns.filter(Boolean).length} of ${columns.length} ${data.nouns[1]}`
  }

  /** The state in the address, without what is as at first. */
  function write(): void {
    const state = new URLSearchParams()
    for (const name of texts) {
      const isFirst = name === "base" ? value(name) === (bases[0] ?? "") : value(name) === ""
      if (!isFirst) state.set(name, value(name))
    }
    for (const name of ["shown", "all"]) if (checked(name)) state.set(name, "1")
    for (const name of ["t", "s"]) {
      if (!boxes(name).every((box) => box.checked)) for (const box of boxes(name)) if (box.checked) state.append(name, box.value)
    }
    const text = state.toString().replace(/%2F/g, "/").replace(/%40/g, "@")
    history.replaceState(null, "", text === "" ? location.pathname + location.search : "#" + text)
  }

  function read(): boolean {
    const hash = location.hash.slice(1)
    if (!/^(m|base|show|order|shown|all|t|s)=/.test(hash)) return false
    const state = new URLSearchParams(hash)
    for (const name of texts) {
      const input = field(name)
      if (!input) continue
      input.value = state.get(name) ?? (name === "base" ? bases[0] : "")
      if (input instanceof HTMLSelectElement && input.selectedIndex < 0) input.selectedIndex = 0
    }
    for (const name of ["shown", "all"]) {
      const box = field(name) as HTMLInputElement | null
      if (box) box.checked = state.has(name)
    }
    for (const name of ["t", "s"]) {
      const chosen = state.getAll(name)
      for (const box of boxes(name)) box.checked = chosen.length === 0 || chosen.includes(box.value)
    }
    return true
  }

  controls.hidden = false
  controls.addEventListener("input", () => {
    draw()
    write()
  })
  addEventListener("hashchange", () => read() && draw())
  if (read()) root.scrollIntoView()
  draw()
}

all<HTMLElement>(document, ".matrix").forEach(matrix)

interface AxisData {
  log: boolean
  low: number
  high: number
}
interface LaneData {
  name: string
  scale: number
  suffix: string
  top: number
  orders: number[]
  values: number[]
  hollow: number[]
}
interface SampleData {
  name: string
  unit: string
  times: number
  axis: AxisData
  lanes: LaneData[]
}

/** A sample with its lane, its place in the lane and its coordinates. */
interface Point {
  lane: number
  index: number
  x: number
  y: number
}

// The sizes of a figure: see lanes.go.
const left = 8
const right = 312
const depth = 18

/** The namespace of the drawings of the page. */
const drawing = document.querySelector("svg")?.namespaceURI ?? null

function shape(name: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const element = document.createElementNS(drawing, name)
  for (const key in attributes) element.setAttribute(key, String(attributes[key]))
  element.textContent = text
  return element
}

const coordinate = (value: number) => String(Math.round(value * 10) / 10)

function button(bar: HTMLElement, text: string, label: string, press: (b: HTMLButtonElement) => void): HTMLButtonElement {
  const b = document.createElement("button")
  b.type = "button"
  b.textContent = text
  b.setAttribute("aria-label", label)
  b.addEventListener("click", () => press(b))
  bar.append(b)
  return b
}

function save(name: string, type: string, text: string): void {
  const link = document.createElement("a")
  link.href = `data:${type};charset=utf-8,${encodeURIComponent(text)}`
  link.download = name.replace(/[^\w.-]+/g, "-")
  link.click()
}

/** The name of a figure in the address and in files: the section, then the heading. */
function nameOf(svg: Element): string {
  const figure = svg.closest("figure")!
  const panel = svg.previousElementSibling?.matches(".panel") ? svg.previousElementSibling.textContent : ""
  return [svg.closest("section[id]")?.id, figure.querySelector("figcaption b")?.textContent, panel].filter(Boolean).join("/")
}

const looks = "fill,stroke,stroke-width,stroke-dasharray,stroke-linecap,stroke-linejoin,opacity,paint-order,font-family,font-size,font-weight,font-variant-numeric,text-anchor".split(",")

/** A copy of a drawing that needs no style sheet. */
function resolved(svg: SVGSVGElement): SVGSVGElement {
  const copy = svg.cloneNode(true) as SVGSVGElement
  const copies = all(copy, "*")
  all(svg, "*").forEach((element, i) => {
    copies[i].removeAttribute("class")
    if (!element.matches("path, rect, circle, text")) return
    const style = getComputedStyle(element)
    for (const look of looks) copies[i].setAttribute(look, style.getPropertyValue(look))
  })
  for (const name of ["class", "tabindex"]) copy.removeAttribute(name)
  return copy
}

/** The drawing as a file: with a background, its caption and its legend. */
function drawingOf(svg: SVGSVGElement): string {
  const copy = resolved(svg)
  const figure = svg.closest("figure")!
  const { width, height } = svg.viewBox.baseVal
  const style = getComputedStyle(document.body)
  const look = { "font-family": style.fontFamily, "font-size": 11, fill: style.color }
  const keys = all<HTMLElement>(figure, ".legend li")
  const lines = [figure.querySelector("figcaption b")?.textContent, svg.previousElementSibling?.matches(".panel") ? svg.previousElementSibling.textContent : ""]
  const total = height + 20 + 15 * keys.length
  copy.setAttribute("viewBox", `0 -18 ${width} ${total}`)
  copy.setAttribute("width", String(width * 2))
  copy.setAttribute("height", String(total * 2))
  copy.prepend(shape("rect", { x: 0, y: -18, width, height: total, fill: style.backgroundColor }), shape("text", { ...look, x: left, y: -6, "font-weight": 700 }, lines.filter(Boolean).join(", ")))
  keys.forEach((key, i) => {
    const mark = resolved(key.querySelector("svg")!)
    const place = { x: left, y: height + 15 * i, width: 24, height: 12 }
    for (const [name, value] of Object.entries(place)) mark.setAttribute(name, String(value))
    copy.append(mark, shape("text", { ...look, x: left + 30, y: place.y + 10 }, key.textContent!))
  })
  return new XMLSerializer().serializeToString(copy)
}

const field = (text: string) => `"${text.replace(/"/g, '""')}"`

function table(data: SampleData): string {
  const lines = ["target,order,value,unit,disturbed"]
  for (const lane of data.lanes) {
    const hollow = new Set(lane.hollow)
    lane.values.forEach((value, i) => lines.push([field(lane.name), lane.orders[i], value, field(data.unit), hollow.has(i)].join(",")))
  }
  return lines.join("\n") + "\n"
}

/** The read-out and the table of a figure with samples. */
function samples(svg: SVGSVGElement, data: SampleData, bar: HTMLElement): void {
  const status = document.createElement("p")
  status.className = "faint read"
  status.setAttribute("role", "status")
  const cursor = shape("circle", { class: "cursor", r: 5, visibility: "hidden" })
  svg.append(cursor)
  svg.tabIndex = 0
  const hollow = data.lanes.map((lane) => new Set(lane.hollow))
  const { axis } = data
  let current: Point | null = null

  const place = (value: number) => Math.min(right, Math.max(left, left + ((right - left) * ((axis.log ? Math.log10(value) : value) - axis.low)) / (axis.high - axis.low)))

  const points: Point[][] = data.lanes.map((lane, l) =>
    lane.values.map((value, index) => ({ lane: l, index, x: place(value), y: lane.top + (depth * (lane.orders[index] + 0.5)) / data.times })),
  )

  function show(point: Point | undefined): void {
    if (!point) return
    current = point
    const lane = data.lanes[point.lane]
    cursor.setAttribute("cx", coordinate(point.x))
    cursor.setAttribute("cy", coordinate(point.y))
    cursor.setAttribute("visibility", "visible")
    const value = Number((lane.values[point.index] / lane.scale).toPrecision(4))
    status.textContent = `${lane.name}: block ${lane.orders[point.index] + 1}, ${value} ${lane.suffix}`.trim() + (hollow[point.lane].has(point.index) ? ", disturbed" : "")
  }

  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect()
    const scale = svg.viewBox.baseVal.width / box.width
    const x = (event.clientX - box.left) * scale
    const y = (event.clientY - box.top) * scale
    let best: Point | undefined
    let least = 30 ** 2
    for (const list of points) {
      for (const point of list) {
        const distance = (point.x - x) ** 2 + (point.y - y) ** 2
        if (distance < least) [best, least] = [point, distance]
      }
    }
    show(best)
  })
  svg.addEventListener("focus", () => show(current ?? points.find((list) => list.length > 0)?.[0]))
  svg.addEventListener("keydown", (event) => {
    if (!current || event.altKey || event.ctrlKey || event.metaKey) return
    const list = points[current.lane]
    const i = list.indexOf(current)
    const lanes = points.filter((other) => other.length > 0)
    const lane = lanes.indexOf(list)
    const beside = (other: Point[] | undefined) => other?.[Math.min(i, other.length - 1)]
    const targets: Record<string, Point | undefined> = {
      ArrowRight: list[i + 1], ArrowLeft: list[i - 1], Home: list[0], End: list[list.length - 1], ArrowDown: beside(lanes[lane + 1]), ArrowUp: beside(lanes[lane - 1]),
    }
    if (!(event.key in targets)) return
    event.preventDefault()
    show(targets[event.key])
  })
  button(bar, "CSV", `Download ${data.name} as CSV`, () => save(nameOf(svg) + ".csv", "text/csv", table(data)))
  bar.after(status)
}

/** The controls of a figure. */
function figure(svg: SVGSVGElement): void {
  const bar = document.createElement("p")
  bar.className = "tools"
  const name = svg.closest("figure")!.querySelector("figcaption b")?.textContent ?? ""
  button(bar, "SVG", `Download ${name} as SVG`, () => save(nameOf(svg) + ".svg", "image/svg+xml", drawingOf(svg)))
  const scroll = svg.closest(".scroll")
  ;(scroll ?? svg).after(bar)
  const data = svg.parentElement!.querySelector(":scope > script")
  if (data) samples(svg, JSON.parse(data.textContent!), bar)
}

all<SVGSVGElement>(document, "figure svg[role=img]:not(.bar)").forEach(figure)
