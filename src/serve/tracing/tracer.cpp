#include "serve/tracing/tracer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace fovea::serve {
namespace {

Span::Time later(Span::Time time, double ms) {
  const std::chrono::duration<double, std::milli> more(std::max(ms, 0.0));
  return time + std::chrono::duration_cast<Span::Time::duration>(more);
}

}  // namespace

RequestTrace::RequestTrace(Tracer& tracer, TraceContext context, std::string parent_id, Time begin)
    : tracer_(tracer),
      context_(std::move(context)),
      parent_id_(std::move(parent_id)),
      begin_(begin),
      last_(begin) {}

TraceContext RequestTrace::child() const {
  TraceContext context = context_;
  context.span_id = make_span_id();
  return context;
}

void RequestTrace::add(Span span) const {
  if (!context_.is_sampled) return;
  span.parent_id = context_.span_id;
  tracer_.exporter_.add(std::move(span));
}

std::optional<RequestTrace::Time> RequestTrace::advance(Time end) {
  const std::lock_guard lock(mutex_);
  if (is_over_) return std::nullopt;
  return std::exchange(last_, std::max(last_, end));
}

void RequestTrace::end_stage(std::string name, Time end, Attributes attributes) {
  if (!context_.is_sampled) return;
  const std::optional<Time> begin = advance(end);
  if (!begin) return;
  add({.context = child(),
       .parent_id = {},
       .name = std::move(name),
       .begin = *begin,
       .end = std::max(*begin, end),
       .attributes = std::move(attributes)});
}

void RequestTrace::end_batch(std::uint64_t number, double queue_ms, double run_ms,
                             Attributes attributes) {
  if (!context_.is_sampled) return;
  const std::optional<Time> submitted = advance(begin_);
  if (!submitted) return;
  Span span{.context = child(),
            .parent_id = {},
            .name = "encode",
            .begin = later(*submitted, queue_ms),
            .end = later(*submitted, std::max(queue_ms, 0.0) + run_ms),
            .attributes = std::move(attributes)};
  end_stage("queue", span.begin);
  if (number == 0 || !advance(span.end)) return;
  tracer_.link(number, span);
  add(std::move(span));
}

void RequestTrace::end(Span span, Time end) {
  if (!context_.is_sampled) return;
  end_stage("reply", end);
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  span.context = context_;
  span.parent_id = parent_id_;
  span.kind = SpanKind::kServer;
  span.begin = begin_;
  span.end = end;
  tracer_.exporter_.add(std::move(span));
}

Tracer::Tracer(const TracingOptions& options, LogSink* log)
    : sampler_(options.sampler),
      max_batches_(options.max_queue),
      exporter_(options, log,
                [this](std::vector<Span>& spans, bool is_last) { collect(spans, is_last); }) {}

std::shared_ptr<RequestTrace> Tracer::begin(const Headers& headers, Span::Time time) {
  const std::optional<TraceContext> parent = trace_context_in(headers);
  TraceContext own{.trace_id = parent ? parent->trace_id : make_trace_id(),
                   .span_id = make_span_id(),
                   .is_sampled = true,
                   .state = parent ? parent->state : ""};
  own.is_sampled = is_sampled(parent, own.trace_id);
  return std::make_shared<RequestTrace>(*this, std::move(own), parent ? parent->span_id : "", time);
}

bool Tracer::is_sampled(const std::optional<TraceContext>& parent,
                        const std::string& trace_id) const {
  if (parent && sampler_.follows_parent) return parent->is_sampled;
  if (sampler_.share >= 1) return true;
  // By the last 56 bits, which are random; the same in every program that the trace comes by.
  // Source: OpenTelemetry, "TraceState: Probability Sampling"; W3C, Trace Context Level 2.
  constexpr std::size_t kDigits = 14;
  std::uint64_t bits = 0;
  const char* const end = trace_id.data() + trace_id.size();
  std::from_chars(end - kDigits, end, bits, 16);
  return std::ldexp(static_cast<double>(bits), -4 * static_cast<int>(kDigits)) >=
         1 - sampler_.share;
}

void Tracer::link(std::uint64_t number, Span& span) {
  span.attributes.emplace_back("fovea.batch.number", static_cast<std::int64_t>(number));
  const std::lock_guard lock(mutex_);
  if (batches_.size() >= max_batches_) return;  // the collector takes none
  const auto [place, is_new] = batches_.try_emplace(number);
  Batch& batch = place->second;
  if (is_new) {
    batch.seen = std::chrono::steady_clock::now();
    batch.span = {.context = {make_trace_id(), make_span_id(), true, {}},
                  .parent_id = {},
                  .name = "encode batch",
                  .begin = span.begin,
                  .end = span.end,
                  .attributes = {{"fovea.batch.number", static_cast<std::int64_t>(number)}}};
  }
  batch.span.links.push_back(span.context);
  span.links.push_back(batch.span.context);
}

void Tracer::collect(std::vector<Span>& spans, bool is_last) {
  constexpr std::chrono::seconds kAllAreThere{1};
  const Span::Time now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  for (auto next = batches_.begin(); next != batches_.end();) {
    Batch& batch = next->second;
    if (is_last || now - batch.seen >= kAllAreThere) {
      spans.push_back(std::move(batch.span));
      next = batches_.erase(next);
    } else {
      ++next;
    }
  }
}

}  // namespace fovea::serve
