#include "support/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>
#include <utility>

namespace fovea::test {

using Value = nlohmann::ordered_json;

struct Json::Library {
  static Json read(const Value& value) {
    Json json;
    switch (value.type()) {
      case Value::value_t::boolean: json.set(value.get<bool>()); break;
      case Value::value_t::number_integer:
      case Value::value_t::number_unsigned: json.set(value.get<std::int64_t>()); break;
      case Value::value_t::number_float: json.set(value.get<double>()); break;
      case Value::value_t::string:
        json.set(std::string_view(value.get_ref<const std::string&>()));
        break;
      case Value::value_t::array:
        json.kind_ = Kind::kArray;
        for (const Value& element : value) json.values_.push_back(read(element));
        break;
      case Value::value_t::object:
        json.kind_ = Kind::kObject;
        for (const auto& [name, member] : value.items()) json[name] = read(member);
        break;
      default: break;
    }
    return json;
  }

  static Value write(const Json& json) {
    Value value;
    switch (json.kind_) {
      case Kind::kNull: break;
      case Kind::kBool: value = json.integer_ != 0; break;
      case Kind::kInteger: value = json.integer_; break;
      case Kind::kFraction: value = json.fraction_; break;
      case Kind::kText: value = json.text_; break;
      case Kind::kArray:
        value = Value::array();
        for (const Json& element : json.values_) value.push_back(write(element));
        break;
      case Kind::kObject:
        value = Value::object();
        for (std::size_t i = 0; i < json.size(); ++i) {
          value[json.names_[i]] = write(json.values_[i]);
        }
        break;
    }
    return value;
  }
};

Json::Json() = default;
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json::~Json() = default;

Json& Json::operator=(Json other) noexcept {
  std::swap(kind_, other.kind_);
  std::swap(integer_, other.integer_);
  std::swap(fraction_, other.fraction_);
  text_.swap(other.text_);
  values_.swap(other.values_);
  names_.swap(other.names_);
  return *this;
}

Json::Json(std::initializer_list<Json> values) {
  const auto is_member = [](const Json& value) {
    return value.is_array() && value.size() == 2 && value[0].is_string();
  };
  if (!std::ranges::all_of(values, is_member)) {
    kind_ = Kind::kArray;
    values_ = values;
    return;
  }
  kind_ = Kind::kObject;
  for (const Json& member : values) (*this)[member[0].text()] = member[1];
}

Json Json::array(std::initializer_list<Json> values) {
  Json json;
  json.kind_ = Kind::kArray;
  json.values_ = values;
  return json;
}

Json Json::object() {
  Json json;
  json.kind_ = Kind::kObject;
  return json;
}

Json Json::parse(std::string_view text) { return Library::read(Value::parse(text)); }

std::string Json::dump() const { return Library::write(*this).dump(); }

const Json& Json::operator[](std::size_t index) const { return values_.at(index); }

Json& Json::operator[](std::size_t index) {
  if (is_null()) kind_ = Kind::kArray;
  if (!is_array()) throw std::logic_error("expected an array, got " + dump());
  if (index >= size()) values_.resize(index + 1);
  return values_[index];
}

const Json* Json::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(names_, name);
  return found == names_.end() ? nullptr
                               : &values_[static_cast<std::size_t>(found - names_.begin())];
}

const Json& Json::at(std::string_view name) const {
  const Json* const found = find(name);
  if (found == nullptr) throw std::logic_error("no " + std::string(name) + " in " + dump());
  return *found;
}

Json& Json::operator[](std::string_view name) {
  if (is_null()) kind_ = Kind::kObject;
  if (!is_object()) throw std::logic_error("expected an object, got " + dump());
  const Json* const found = find(name);
  if (found != nullptr) return values_[static_cast<std::size_t>(found - values_.data())];
  names_.emplace_back(name);
  return values_.emplace_back();
}

void Json::push_back(Json value) {
  if (is_null()) kind_ = Kind::kArray;
  if (!is_array()) throw std::logic_error("expected an array, got " + dump());
  values_.push_back(std::move(value));
}

bool Json::contains(std::string_view name) const noexcept { return find(name) != nullptr; }

void Json::set(bool value) { kind_ = Kind::kBool, integer_ = value ? 1 : 0; }
void Json::set(std::int64_t value) { kind_ = Kind::kInteger, integer_ = value; }
void Json::set(double value) { kind_ = Kind::kFraction, fraction_ = value; }
void Json::set(std::string_view value) { kind_ = Kind::kText, text_ = value; }

bool Json::boolean() const {
  if (kind_ != Kind::kBool) throw std::logic_error("expected true or false, got " + dump());
  return integer_ != 0;
}

std::int64_t Json::integer() const {
  if (kind_ == Kind::kFraction) return static_cast<std::int64_t>(fraction_);
  if (kind_ != Kind::kInteger) throw std::logic_error("expected an integer, got " + dump());
  return integer_;
}

double Json::number() const {
  if (kind_ == Kind::kFraction) return fraction_;
  if (kind_ != Kind::kInteger) throw std::logic_error("expected a number, got " + dump());
  return static_cast<double>(integer_);
}

const std::string& Json::text() const {
  if (!is_string()) throw std::logic_error("expected a text, got " + dump());
  return text_;
}

bool operator==(const Json& a, const Json& b) {
  const auto is_number = [](const Json& json) {
    return json.kind_ == Json::Kind::kInteger || json.kind_ == Json::Kind::kFraction;
  };
  if (a.kind_ != b.kind_) return is_number(a) && is_number(b) && a.number() == b.number();
  return a.integer_ == b.integer_ && a.fraction_ == b.fraction_ && a.text_ == b.text_ &&
         a.names_ == b.names_ && a.values_ == b.values_;
}

std::ostream& operator<<(std::ostream& out, const Json& json) { return out << json.dump(); }

}  // namespace fovea::test
